<?php
// PDO, with statements prepared by the server or put together by PDO itself.
$emulate = ($argv[1] ?? '') === 'emulate';
$dsn = sprintf('mysql:host=%s;port=%s;dbname=%s;charset=utf8mb4', getenv('CLIENT_HOST'), getenv('CLIENT_PORT'), getenv('CLIENT_DATABASE'));
$db = new PDO($dsn, getenv('CLIENT_USER'), getenv('CLIENT_PASSWORD'), [
    PDO::ATTR_EMULATE_PREPARES => $emulate, PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_NUM,
]);
$mariadb = str_contains($db->query('SELECT VERSION()')->fetchColumn(), 'MariaDB');

function scenario(string $name, callable $body): void {
    global $db;
    try {
        $body($name);
    } catch (PDOException $e) {
        echo "$name error={$e->errorInfo[1]}\n";
        if ($db->inTransaction()) $db->rollBack();
    }
}

function insert(string $sql, array $values = []): PDOStatement {
    global $db;
    $st = $db->prepare($sql);
    $st->execute($values);
    return $st;
}

function rows(string $g): void {
    foreach (insert('SELECT id, n, s, u FROM orders WHERE g=? ORDER BY id', [$g]) as $row) {
        echo "$g row=", implode('/', array_map(fn($v) => $v ?? 'NULL', $row)), "\n";
    }
}

scenario('single', function ($g) use ($db) {
    $st = insert('INSERT INTO orders (g, n, s) VALUES (:g, :n, :s)', ['g' => $g, 'n' => 1, 's' => "it's \\ ü"]);
    echo "$g key={$db->lastInsertId()} affected={$st->rowCount()}\n";
    $affected = $db->exec("INSERT INTO orders (g, n) VALUES ('$g', 2)");
    echo "$g key={$db->lastInsertId()} affected=$affected\n";
    rows($g);
});
scenario('batch', function ($g) use ($db) {
    $st = insert('INSERT INTO orders (g, n) VALUES (?, ?), (?, ?), (?, ?)', [$g, 1, $g, null, $g, 3]);
    $first = (int)$db->lastInsertId();
    echo "$g keys=", implode(',', range($first, $first + 2)), " affected={$st->rowCount()}\n";
    rows($g);
});
scenario('repeated', function ($g) use ($db) {
    $st = $db->prepare('INSERT INTO orders (g, n, s) VALUES (?, ?, ?)');
    foreach ([[1, 'a'], [null, 'b'], [3, null], [null, null], ['5', 'e']] as [$n, $s]) {
        $st->bindValue(1, $g);
        $st->bindValue(2, $n, $n === null ? PDO::PARAM_NULL : PDO::PARAM_INT);
        $st->bindValue(3, $s);
        $st->execute();
        echo "$g key={$db->lastInsertId()} affected={$st->rowCount()}\n";
    }
    rows($g);
});
scenario('commit', function ($g) use ($db) {
    $db->beginTransaction();
    insert('INSERT INTO orders (g) VALUES (?)', [$g]);
    $order = $db->lastInsertId();
    insert('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', [$g]);
    $item = $db->lastInsertId();
    $db->commit();
    echo "$g order=$order item=$item\n";
});
scenario('rollback', function ($g) use ($db) {
    $db->beginTransaction();
    insert('INSERT INTO orders (g) VALUES (?)', [$g]);
    $id = $db->lastInsertId();
    $db->rollBack();
    echo "$g key=$id\n";
    rows($g);
});
scenario('upsert', function ($g) use ($db) {
    foreach ([1, 2, 2] as $n) {
        $st = insert('INSERT INTO orders (g, n, u) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE n=VALUES(n)', [$g, $n, 'up']);
        echo "$g key={$db->lastInsertId()} affected={$st->rowCount()} last=", $db->query('SELECT LAST_INSERT_ID()')->fetchColumn(), "\n";
    }
    rows($g);
});
scenario('ignore', function ($g) use ($db) {
    for ($i = 0; $i < 2; $i++) {
        $st = insert('INSERT IGNORE INTO orders (g, u) VALUES (?, ?)', [$g, 'ig']);
        echo "$g key={$db->lastInsertId()} affected={$st->rowCount()}\n";
    }
});
scenario('failed', function ($g) use ($db) {
    insert('INSERT INTO orders (g, u) VALUES (?, ?)', [$g, 'fail']);
    $parent = $db->lastInsertId();
    try {
        insert('INSERT INTO orders (g, u) VALUES (?, ?)', [$g, 'fail']);
    } catch (PDOException $e) {
        echo "$g failed={$e->errorInfo[1]} state={$e->errorInfo[0]}\n";
    }
    insert('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', [$g]);
    echo "$g parent=$parent child={$db->lastInsertId()}\n";
});
scenario('explicit', function ($g) use ($db) {
    insert('INSERT INTO orders (id, g) VALUES (?, ?)', [42, $g]);
    echo "$g key={$db->lastInsertId()} last=", $db->query('SELECT LAST_INSERT_ID()')->fetchColumn(), "\n";
});
scenario('zero', function ($g) use ($db) {
    $st = $db->prepare('INSERT INTO orders (id, g) VALUES (:id, :g)');
    foreach ([null, 0, '0', 43, null] as $id) {
        $st->execute(['id' => $id, 'g' => $g]); // strings but for NULL
        echo "$g key={$db->lastInsertId()}\n";
    }
    $st->bindValue('g', $g);
    foreach ([0, 44] as $id) {
        $st->bindValue('id', $id, PDO::PARAM_INT);
        $st->execute();
        echo "$g key={$db->lastInsertId()}\n";
    }
    rows($g);
});
scenario('plain', function ($g) use ($db) {
    $st = insert('INSERT INTO plain (s) VALUES (?), (?)', [$g, $g]);
    echo "$g key={$db->lastInsertId()} affected={$st->rowCount()}\n";
});
if ($mariadb) scenario('returning', function ($g) use ($db) {
    $st = insert('INSERT INTO orders (g, n) VALUES (?, ?), (?, ?) RETURNING id, n', [$g, 1, $g, 2]);
    echo "$g rows=", implode(',', array_map(fn($row) => implode('/', $row), $st->fetchAll())), "\n";
});
