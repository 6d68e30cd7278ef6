# DBI with DBD::mysql or DBD::MariaDB: dbd.pl DRIVER PREPARED_BY_SERVER
use strict;
use warnings;
use utf8;
use DBI;

binmode STDOUT, ':encoding(UTF-8)';
my ($driver, $server, $compression) = @ARGV;
my $prefix = $driver eq 'mysql' ? 'mysql' : 'mariadb';
my $db = DBI->connect("DBI:$driver:database=$ENV{CLIENT_DATABASE};host=$ENV{CLIENT_HOST};port=$ENV{CLIENT_PORT}" . ($compression ? ";${\ lc $driver}_compression=1" : ''),
    $ENV{CLIENT_USER}, $ENV{CLIENT_PASSWORD},
    { RaiseError => 1, PrintError => 0, "${prefix}_server_prepare" => $server, ($driver eq 'mysql' ? (mysql_enable_utf8mb4 => 1) : ()) });
my $mariadb = ($db->selectrow_array('SELECT VERSION()'))[0] =~ /MariaDB/;

sub scenario {
    my ($name, $body) = @_;
    return if eval { $body->($name); 1 };
    print "$name error=", $db->err || $@, "\n";
    eval { $db->rollback } unless $db->{AutoCommit};
    $db->{AutoCommit} = 1;
}

# key is the last id as DBI has it; it must be what the driver's own attribute says.
sub key { return join '/', $db->last_insert_id(undef, undef, undef, undef), $db->{"${prefix}_insertid"} }

sub insert {
    my ($sql, @values) = @_;
    my $st = $db->prepare($sql);
    my $affected = $st->execute(@values);
    return ($st->{"${prefix}_insertid"}, $affected);
}

sub rows {
    my ($g) = @_;
    my $rows = $db->selectall_arrayref('SELECT id, n, s, u FROM orders WHERE g=? ORDER BY id', undef, $g);
    print "$g row=", join('/', map { $_ // 'NULL' } @$_), "\n" for @$rows;
}

scenario single => sub {
    my ($g) = @_;
    my ($id, $affected) = insert('INSERT INTO orders (g, n, s) VALUES (?, ?, ?)', $g, 1, "it's \\ ü");
    print "$g key=$id affected=$affected\n";
    $affected = $db->do('INSERT INTO orders (g, n) VALUES (?, ?)', undef, $g, 2);
    print "$g key=", key(), " affected=$affected\n";
    $affected = $db->do("INSERT INTO orders (g, n) VALUES ('$g', 3)");
    print "$g key=", key(), " affected=$affected\n";
    rows($g);
};
scenario batch => sub {
    my ($g) = @_;
    my ($id, $affected) = insert('INSERT INTO orders (g, n) VALUES (?, ?), (?, ?), (?, ?)', $g, 1, $g, undef, $g, 3);
    print "$g keys=", join(',', $id .. $id + 2), " affected=$affected\n";
    rows($g);
};
scenario repeated => sub {
    my ($g) = @_;
    my $st = $db->prepare('INSERT INTO orders (g, n, s) VALUES (?, ?, ?)');
    for my $row ([1, 'a'], [undef, 'b'], [3, undef], [undef, undef], ['5', 'e']) {
        my $affected = $st->execute($g, @$row);
        print "$g key=", $st->{"${prefix}_insertid"}, " affected=$affected\n";
    }
    $st->bind_param(2, 6, DBI::SQL_INTEGER);
    $st->bind_param(1, $g);
    $st->bind_param(3, undef);
    $st->execute;
    print "$g key=", $st->{"${prefix}_insertid"}, "\n";
    rows($g);
};
scenario array => sub {
    my ($g) = @_;
    my $st = $db->prepare('INSERT INTO orders (g, n) VALUES (?, ?)');
    my $n = $st->execute_array({ ArrayTupleStatus => \my @status }, $g, [1, undef, 3]);
    print "$g tuples=$n status=", join(',', @status), " key=", $st->{"${prefix}_insertid"}, "\n";
    rows($g);
};
scenario commit => sub {
    my ($g) = @_;
    $db->begin_work;
    my ($order) = insert('INSERT INTO orders (g) VALUES (?)', $g);
    my ($item) = insert('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', $g);
    $db->commit;
    print "$g order=$order item=$item\n";
};
scenario rollback => sub {
    my ($g) = @_;
    $db->begin_work;
    my ($id) = insert('INSERT INTO orders (g) VALUES (?)', $g);
    $db->rollback;
    print "$g key=$id\n";
    rows($g);
};
scenario upsert => sub {
    my ($g) = @_;
    for my $n (1, 2, 2) {
        my ($id, $affected) = insert('INSERT INTO orders (g, n, u) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE n=VALUES(n)', $g, $n, 'up');
        print "$g key=$id affected=$affected last=", $db->selectrow_array('SELECT LAST_INSERT_ID()'), "\n";
    }
    rows($g);
};
scenario ignore => sub {
    my ($g) = @_;
    for (1, 2) {
        my ($id, $affected) = insert('INSERT IGNORE INTO orders (g, u) VALUES (?, ?)', $g, 'ig');
        print "$g key=", $id // 'undef', " affected=$affected\n";
    }
};
scenario failed => sub {
    my ($g) = @_;
    my ($parent) = insert('INSERT INTO orders (g, u) VALUES (?, ?)', $g, 'fail');
    eval { insert('INSERT INTO orders (g, u) VALUES (?, ?)', $g, 'fail') };
    print "$g failed=", $db->err, ' state=', $db->state, "\n";
    my ($child) = insert('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', $g);
    print "$g parent=$parent child=$child\n";
};
scenario explicit => sub {
    my ($g) = @_;
    my ($id) = insert('INSERT INTO orders (id, g) VALUES (?, ?)', 42, $g);
    print "$g key=$id last=", $db->selectrow_array('SELECT LAST_INSERT_ID()'), "\n";
};
scenario zero => sub {
    my ($g) = @_;
    my $st = $db->prepare('INSERT INTO orders (id, g) VALUES (?, ?)');
    for my $id (undef, 0, '0', 43, undef) {
        $st->execute($id, $g);
        print "$g key=", $st->{"${prefix}_insertid"}, "\n";
    }
    rows($g);
};
scenario plain => sub {
    my ($g) = @_;
    my ($id, $affected) = insert('INSERT INTO plain (s) VALUES (?), (?)', $g, $g);
    print "$g key=$id affected=$affected\n";
};
scenario returning => sub {
    my ($g) = @_;
    my $st = $db->prepare('INSERT INTO orders (g, n) VALUES (?, ?), (?, ?) RETURNING id, n');
    $st->execute($g, 1, $g, 2);
    print "$g rows=", join(',', map { join '/', @$_ } @{ $st->fetchall_arrayref }), "\n";
} if $mariadb;
$db->disconnect;
