# The mysql2 gem: mysql2.rb [prepared]
require 'mysql2'
require_relative 'common'

$prepared = ARGV[0] == 'prepared'
$db = Mysql2::Client.new(host: ENV['CLIENT_HOST'], port: ENV['CLIENT_PORT'].to_i, username: ENV['CLIENT_USER'],
                         password: ENV['CLIENT_PASSWORD'], database: ENV['CLIENT_DATABASE'], encoding: 'utf8mb4')

Outcome = Struct.new(:key, :affected, :rows)

# run executes a statement, in its mode: prepared with bound values, or as text with quoted ones.
def run(sql, *values)
  if $prepared
    statement = $db.prepare(sql)
    rows = statement.execute(*values)&.map(&:values)
    outcome = Outcome.new(statement.last_id, statement.affected_rows, rows)
    statement.close
    return outcome
  end
  text = sql.gsub('?') do
    value = values.shift
    value.nil? ? 'NULL' : value.is_a?(Integer) ? value.to_s : "'#{$db.escape(value)}'"
  end
  rows = $db.query(text)&.map(&:values)
  Outcome.new($db.last_id, $db.affected_rows, rows)
end

def last
  run('SELECT LAST_INSERT_ID()').rows[0][0]
end

def rows(g)
  run('SELECT id, n, s, u FROM orders WHERE g=? ORDER BY id', g).rows.each { |row| puts "#{g} row=#{row.map { |v| show(v) }.join('/')}" }
end

scenario('single') do |g|
  r = run('INSERT INTO orders (g, n, s) VALUES (?, ?, ?)', g, 1, "it's \\ ü")
  puts "#{g} key=#{r.key} affected=#{r.affected} last=#{last}"
  rows(g)
end
scenario('batch') do |g|
  r = run('INSERT INTO orders (g, n) VALUES (?, ?), (?, ?), (?, ?)', g, 1, g, nil, g, 3)
  puts "#{g} keys=#{r.key},#{r.key + 1},#{r.key + 2} affected=#{r.affected}"
  rows(g)
end
scenario('commit') do |g|
  $db.query('BEGIN')
  order = run('INSERT INTO orders (g) VALUES (?)', g).key
  item = run('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', g).key
  $db.query('COMMIT')
  puts "#{g} order=#{order} item=#{item}"
end
scenario('rollback') do |g|
  $db.query('BEGIN')
  key = run('INSERT INTO orders (g) VALUES (?)', g).key
  $db.query('ROLLBACK')
  puts "#{g} key=#{key}"
  rows(g)
end
scenario('upsert') do |g|
  [1, 2, 2].each do |n|
    r = run("INSERT INTO orders (g, n, u) VALUES (?, ?, 'up') ON DUPLICATE KEY UPDATE n=VALUES(n)", g, n)
    puts "#{g} key=#{r.key} affected=#{r.affected} last=#{last}"
  end
  2.times do
    r = run("INSERT IGNORE INTO orders (g, u) VALUES (?, 'ig')", g)
    puts "#{g} key=#{r.key} affected=#{r.affected}"
  end
  rows(g)
end
scenario('failed') do |g|
  parent = run("INSERT INTO orders (g, u) VALUES (?, 'fail')", g).key
  begin
    run("INSERT INTO orders (g, u) VALUES (?, 'fail')", g)
  rescue Mysql2::Error => e
    puts "#{g} failed=#{e.error_number} state=#{e.sql_state}"
  end
  child = run('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', g).key
  puts "#{g} parent=#{parent} child=#{child}"
end
scenario('explicit') do |g|
  puts "#{g} key=#{run('INSERT INTO orders (id, g) VALUES (?, ?)', 42, g).key} last=#{last}"
  rows(g)
end
scenario('zero') do |g|
  [nil, 0, '0'].each { |id| puts "#{g} key=#{run('INSERT INTO orders (id, g) VALUES (?, ?)', id, g).key}" }
  rows(g)
end
scenario('plain') do |g|
  r = run('INSERT INTO plain (s) VALUES (?), (?)', g, g)
  puts "#{g} key=#{r.key} affected=#{r.affected}"
end
if $db.server_info[:version].include?('MariaDB')
  scenario('returning') do |g|
    r = run('INSERT INTO orders (g, n) VALUES (?, 1), (?, 2) RETURNING id, n', g, g)
    puts "#{g} rows=#{r.rows.map { |row| row.join('/') }.join(',')}"
  end
end
if $prepared
  scenario('repeated') do |g|
    statement = $db.prepare('INSERT INTO orders (id, g, n, s) VALUES (?, ?, ?, ?)')
    [[nil, 1, 'a'], [nil, nil, 'b'], [0, 3, nil], [71, nil, nil], ['0', 5.0, 6], [nil, '7', 'x' * 50]].each do |id, n, s|
      statement.execute(id, g, n, s)
      puts "#{g} key=#{statement.last_id} connection=#{$db.last_id} affected=#{statement.affected_rows}"
    end
    rows(g)
  end
end
