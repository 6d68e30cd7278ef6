<?php
// mysqli and PDO with persistent connections, which are looked at before they are used again: lost.php LIBRARY
$pdo = $argv[1] === 'pdo';

function connect(string $port): mysqli|PDO {
    global $pdo;
    $host = getenv('CLIENT_HOST');
    if (!$pdo) return new mysqli("p:$host", getenv('CLIENT_USER'), getenv('CLIENT_PASSWORD'), getenv('CLIENT_DATABASE'), (int)getenv($port));
    return new PDO("mysql:host=$host;port=" . getenv($port) . ';dbname=' . getenv('CLIENT_DATABASE'), getenv('CLIENT_USER'), getenv('CLIENT_PASSWORD'),
        [PDO::ATTR_PERSISTENT => true]);
}

function attempt(string $what, string $port, string $sql): void {
    try {
        $db = connect($port);
        $db->query($sql);
        echo "$what key=", $db instanceof PDO ? $db->lastInsertId() : $db->insert_id, "\n";
    } catch (PDOException $e) {
        echo "$what {$e->errorInfo[1]} {$e->errorInfo[0]} {$e->getMessage()}\n";
    } catch (mysqli_sql_exception $e) {
        echo "$what {$e->getCode()} {$e->getSqlState()} {$e->getMessage()}\n";
    }
}

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
attempt('lost', 'CLIENT_PORT', "INSERT INTO orders (g) VALUES ('lose me')");
attempt('again', 'CLIENT_PORT', "INSERT INTO orders (g) VALUES ('again')");
attempt('connect', 'CLIENT_PORT_DOWN', 'SELECT 1');
