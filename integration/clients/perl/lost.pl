# DBI with DBD::mysql or DBD::MariaDB, and its cache of connections: lost.pl DRIVER
use strict;
use warnings;
use DBI;

my ($driver) = @ARGV;

sub connected {
    my ($port) = @_;
    return DBI->connect_cached("DBI:$driver:database=$ENV{CLIENT_DATABASE};host=$ENV{CLIENT_HOST};port=$port", $ENV{CLIENT_USER},
        $ENV{CLIENT_PASSWORD}, { RaiseError => 0, PrintError => 0 });
}

sub show { print join(' ', $_[0], $DBI::err, $DBI::state, $DBI::errstr), "\n" }

connected($ENV{CLIENT_PORT})->do("INSERT INTO orders (g) VALUES ('lose me')") or show('lost');
my $db = connected($ENV{CLIENT_PORT});
$db->do("INSERT INTO orders (g) VALUES ('again')") or show('again');
print 'again key=', $db->last_insert_id(undef, undef, undef, undef), "\n";
connected($ENV{CLIENT_PORT_DOWN}) or show('connect');
