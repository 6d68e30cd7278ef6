# Active Record over mysql2: activerecord.rb [prepared]
require 'active_record'
require_relative 'common'

ActiveRecord::Base.establish_connection(
  adapter: 'mysql2', host: ENV['CLIENT_HOST'], port: ENV['CLIENT_PORT'].to_i, username: ENV['CLIENT_USER'],
  password: ENV['CLIENT_PASSWORD'], database: ENV['CLIENT_DATABASE'], encoding: 'utf8mb4', prepared_statements: ARGV[0] == 'prepared'
)

class Order < ActiveRecord::Base
  has_many :items
end

class Item < ActiveRecord::Base
  belongs_to :order, optional: true
end

class Plain < ActiveRecord::Base
  self.table_name = 'plain'
end

def rows(g)
  Order.where(g: g).order(:id).pluck(:id, :n, :s, :u).each { |row| puts "#{g} row=#{row.map { |v| show(v) }.join('/')}" }
end

scenario('single') do |g|
  puts "#{g} key=#{Order.create!(g: g, n: 1, s: "it's \\ ü").id}"
  rows(g)
end
scenario('repeated') do |g|
  [[1, 'a'], [nil, 'b'], [3, nil], [nil, nil]].each { |n, s| puts "#{g} key=#{Order.create!(g: g, n: n, s: s).id}" }
  rows(g)
end
scenario('batch') do |g|
  Order.insert_all!([{ g: g, n: 1 }, { g: g, n: nil }, { g: g, n: 3 }])
  rows(g)
end
scenario('children') do |g|
  order = Order.create!(g: g, items: [Item.new(s: 'a'), Item.new(s: 'b')])
  puts "#{g} order=#{order.id} items=#{order.items.map(&:id).join(',')} read=#{Item.where(order_id: order.id).count}"
end
scenario('rollback') do |g|
  order = nil
  Order.transaction do
    order = Order.create!(g: g)
    puts "#{g} key=#{order.id}"
    raise ActiveRecord::Rollback
  end
  rows(g)
end
scenario('upsert') do |g|
  2.times { |n| Order.upsert_all([{ g: g, n: n, u: 'up' }]) }
  2.times { Order.insert_all([{ g: g, u: 'ig' }]) }
  rows(g)
end
scenario('failed') do |g|
  parent = Order.create!(g: g, u: 'fail').id
  begin
    Order.create!(g: g, u: 'fail')
  rescue ActiveRecord::RecordNotUnique => e
    puts "#{g} failed=#{e.cause.error_number}"
  end
  Item.connection.execute("INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), '#{g}')")
  puts "#{g} parent=#{parent} last=#{Item.connection.select_value('SELECT LAST_INSERT_ID()')}"
end
scenario('explicit') do |g|
  puts "#{g} key=#{Order.create!(id: 42, g: g).id}"
  puts "#{g} key=#{Order.create!(id: nil, g: g).id}"
  rows(g)
end
scenario('plain') { |g| puts "#{g} key=#{Plain.create!(s: g).id}" }
