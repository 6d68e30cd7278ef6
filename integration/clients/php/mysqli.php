<?php
// mysqli: text statements, real prepared statements, multi_query.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$prepared = ($argv[1] ?? '') === 'prepared';
$db = mysqli_init();
$db->real_connect(getenv('CLIENT_HOST'), getenv('CLIENT_USER'), getenv('CLIENT_PASSWORD'), getenv('CLIENT_DATABASE'), (int)getenv('CLIENT_PORT'), null,
    ($argv[2] ?? '') === 'compressed' ? MYSQLI_CLIENT_COMPRESS : 0);
$db->set_charset('utf8mb4');
$mariadb = str_contains($db->query('SELECT VERSION()')->fetch_row()[0], 'MariaDB');

function scenario(string $name, callable $body): void {
    global $db;
    try {
        $body($name);
    } catch (mysqli_sql_exception $e) {
        echo "$name error={$e->getCode()}\n";
        try { $db->rollback(); } catch (mysqli_sql_exception $e) { }
    }
}

// run executes a statement, in its mode: prepared with bound values, or as text with quoted ones.
function run(string $sql, array $values = []): object {
    global $db, $prepared;
    if ($prepared) {
        $st = $db->prepare($sql);
        $st->execute($values);
        $result = (object)['id' => $st->insert_id, 'affected' => $st->affected_rows, 'rows' => $st->get_result() ?: null];
        if ($result->rows) $result->all = $result->rows->fetch_all();
        $st->close();
        return $result;
    }
    $parts = explode('?', $sql);
    $text = array_shift($parts);
    foreach ($parts as $i => $part) {
        $v = $values[$i];
        $text .= ($v === null ? 'NULL' : (is_int($v) ? $v : "'" . $db->real_escape_string($v) . "'")) . $part;
    }
    $got = $db->query($text);
    $result = (object)['id' => $db->insert_id, 'affected' => $db->affected_rows];
    if ($got instanceof mysqli_result) $result->all = $got->fetch_all();
    return $result;
}

function rows(string $g): void {
    foreach (run('SELECT id, n, s, u FROM orders WHERE g=? ORDER BY id', [$g])->all as $row) {
        echo "$g row=", implode('/', array_map(fn($v) => $v ?? 'NULL', $row)), "\n";
    }
}

scenario('single', function ($g) {
    $r = run('INSERT INTO orders (g, n, s) VALUES (?, ?, ?)', [$g, 1, "it's \\ ü"]);
    echo "$g key=$r->id affected=$r->affected last=", run('SELECT LAST_INSERT_ID()')->all[0][0], "\n";
    rows($g);
});
scenario('batch', function ($g) use ($db) {
    $r = run('INSERT INTO orders (g, n) VALUES (?, 1), (?, NULL), (?, 3)', [$g, $g, $g]);
    echo "$g keys=", implode(',', range($r->id, $r->id + 2)), " affected=$r->affected info=", $db->info, "\n";
    rows($g);
});
scenario('child', function ($g) {
    $parent = run('INSERT INTO orders (g) VALUES (?)', [$g])->id;
    $child = run('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', [$g])->id;
    echo "$g parent=$parent child=$child\n";
});
scenario('commit', function ($g) use ($db) {
    $db->begin_transaction();
    $order = run('INSERT INTO orders (g) VALUES (?)', [$g])->id;
    $items = [];
    foreach (['a', 'b'] as $s) $items[] = run('INSERT INTO items (order_id, s) VALUES (?, ?)', [$order, $s])->id;
    $db->commit();
    echo "$g order=$order items=", implode(',', $items), "\n";
    rows($g);
});
scenario('rollback', function ($g) use ($db) {
    $db->autocommit(false);
    $id = run('INSERT INTO orders (g) VALUES (?)', [$g])->id;
    $db->rollback();
    $db->autocommit(true);
    echo "$g key=$id\n";
    rows($g);
});
scenario('upsert', function ($g) {
    for ($i = 0; $i < 3; $i++) {
        $r = run('INSERT INTO orders (g, n, u) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE n=VALUES(n)', [$g, min($i, 1), 'up']);
        echo "$g key=$r->id affected=$r->affected last=", run('SELECT LAST_INSERT_ID()')->all[0][0], "\n";
    }
    $r = run('INSERT INTO orders (g, n, u) VALUES (?, 9, ?) ON DUPLICATE KEY UPDATE id=LAST_INSERT_ID(id), n=9', [$g, 'up']);
    echo "$g key=$r->id affected=$r->affected last=", run('SELECT LAST_INSERT_ID()')->all[0][0], "\n";
    rows($g);
});
scenario('ignore', function ($g) use ($db) {
    for ($i = 0; $i < 2; $i++) {
        $r = run('INSERT IGNORE INTO orders (g, u) VALUES (?, ?)', [$g, 'ig']);
        echo "$g key=$r->id affected=$r->affected warnings=$db->warning_count\n";
    }
    rows($g);
});
scenario('replace', function ($g) {
    for ($i = 0; $i < 2; $i++) {
        $r = run('REPLACE INTO orders SET g=?, u=?, n=?', [$g, 're', $i]);
        echo "$g key=$r->id affected=$r->affected\n";
    }
    rows($g);
});
scenario('failed', function ($g) use ($db) {
    $parent = run('INSERT INTO orders (g, u) VALUES (?, ?)', [$g, 'fail'])->id;
    try {
        run('INSERT INTO orders (g, u) VALUES (?, ?)', [$g, 'fail']);
    } catch (mysqli_sql_exception $e) {
        echo "$g failed={$e->getCode()} state={$e->getSqlState()} key=$db->insert_id\n";
    }
    $r = run('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', [$g]);
    echo "$g parent=$parent child=$r->id\n";
});
scenario('explicit', function ($g) {
    $r = run('INSERT INTO orders (id, g) VALUES (?, ?)', [42, $g]);
    echo "$g key=$r->id last=", run('SELECT LAST_INSERT_ID()')->all[0][0], "\n";
    $r = run('INSERT INTO orders (id, g) VALUES (?, ?), (?, ?)', [51, $g, 53, $g]);
    echo "$g key=$r->id affected=$r->affected\n";
    rows($g);
});
scenario('zero', function ($g) {
    foreach ([null, 0, '0'] as $id) {
        $r = run('INSERT INTO orders (id, g) VALUES (?, ?)', [$id, $g]);
        echo "$g key=$r->id\n";
    }
    $r = run('INSERT INTO orders VALUES (NULL, ?, 1, NULL, NULL), (DEFAULT, ?, 2, NULL, NULL), (0, ?, 3, NULL, NULL)', [$g, $g, $g]);
    echo "$g keys=", implode(',', range($r->id, $r->id + 2)), "\n";
    rows($g);
});
scenario('mixed', function ($g) {
    $r = run('INSERT INTO orders (id, g) VALUES (?, ?), (?, ?)', [61, $g, null, $g]);
    echo "$g key=$r->id affected=$r->affected\n";
    rows($g);
});
scenario('plain', function ($g) {
    $r = run('INSERT INTO plain (s) VALUES (?), (?)', [$g, $g]);
    echo "$g key=$r->id affected=$r->affected\n";
});
if ($mariadb) scenario('returning', function ($g) {
    $r = run('INSERT INTO orders (g, n) VALUES (?, 1), (?, 2) RETURNING id, n', [$g, $g]);
    echo "$g rows=", implode(',', array_map(fn($row) => implode('/', $row), $r->all)), " affected=$r->affected\n";
});
if ($prepared) scenario('repeated', function ($g) use ($db) {
    $st = $db->prepare('INSERT INTO orders (g, n, s) VALUES (?, ?, ?)');
    $n = $s = null;
    $st->bind_param('sis', $g, $n, $s);
    foreach ([[1, 'a'], [null, 'b'], [3, null], [null, null]] as [$n, $s]) {
        $st->execute();
        echo "$g key=$st->insert_id connection=$db->insert_id affected=$st->affected_rows\n";
    }
    $st->bind_param('sds', $g, $n, $s); // another type for the same parameter
    [$n, $s] = [5.0, 'e'];
    $st->execute();
    echo "$g key=$st->insert_id\n";
    $st->bind_param('sbs', $g, $n, $s); // sent as long data
    [$n, $s] = [null, 'f'];
    $st->send_long_data(1, '6');
    $st->execute();
    echo "$g key=$st->insert_id\n";
    $st->reset();
    [$n, $s] = [7, 'g'];
    $st->bind_param('iss', $n, $g, $s);
    rows($g);
});
if ($prepared) scenario('bound', function ($g) use ($db) {
    $st = $db->prepare('INSERT INTO orders (id, g) VALUES (?, ?)');
    $st->bind_param('is', $id, $g);
    foreach ([null, 71, 0, 72, null] as $id) {
        $st->execute();
        echo "$g key=$st->insert_id\n";
    }
    rows($g);
});
if (!$prepared) scenario('multi', function ($g) use ($db) {
    $db->multi_query("INSERT INTO orders (g) VALUES ('$g'); INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), '$g'); "
        . "SELECT LAST_INSERT_ID(); INSERT INTO orders (g, n) VALUES ('$g', 2), ('$g', 3)");
    do {
        $rows = $db->store_result();
        echo "$g ", $rows ? 'rows=' . $rows->fetch_row()[0] : "key=$db->insert_id affected=$db->affected_rows", "\n";
    } while ($db->more_results() && $db->next_result());
    rows($g);
});
