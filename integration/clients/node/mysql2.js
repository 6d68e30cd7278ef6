// mysql2: mysql2.js query | execute
'use strict'
const mysql = require('mysql2/promise')
const { config, show, code, run } = require('./common')

const method = process.argv[2]

async function main () {
  const db = await mysql.createConnection({ ...config, multipleStatements: true, compress: process.argv[3] === 'compressed' })
  const insert = async (sql, values) => (await db[method](sql, values))[0]
  const last = async () => (await db.query('SELECT LAST_INSERT_ID() AS id'))[0][0].id
  const rows = async g => {
    for (const row of (await db[method]('SELECT id, n, s, u FROM orders WHERE g=? ORDER BY id', [g]))[0]) console.log(`${g} row=${show(row)}`)
  }
  const version = (await db.query('SELECT VERSION() AS v'))[0][0].v
  const scenarios = {
    async single (g) {
      const r = await insert('INSERT INTO orders (g, n, s) VALUES (?, ?, ?)', [g, 1, "it's \\ ü"])
      console.log(`${g} key=${r.insertId} affected=${r.affectedRows} last=${await last()}`)
      await rows(g)
    },
    async batch (g) {
      const r = await insert('INSERT INTO orders (g, n) VALUES (?, ?), (?, ?), (?, ?)', [g, 1, g, null, g, 3])
      console.log(`${g} keys=${r.insertId},${r.insertId + 1},${r.insertId + 2} affected=${r.affectedRows} info=${r.info}`)
      await rows(g)
    },
    async repeated (g) {
      for (const [n, s] of [[1, 'a'], [null, 'b'], [3, null], [null, null], ['5', 6]]) {
        const r = await insert('INSERT INTO orders (g, n, s) VALUES (?, ?, ?)', [g, n, s])
        console.log(`${g} key=${r.insertId} affected=${r.affectedRows}`)
      }
      await rows(g)
    },
    async at_once (g) { // queued in the connection, sent one behind the other
      const all = await Promise.all([1, 2, 3].map(n => insert('INSERT INTO orders (g, n) VALUES (?, ?)', [g, n])))
      console.log(`${g} ${all.map(r => `key=${r.insertId}`).join(' ')}`)
      await rows(g)
    },
    async commit (g) {
      await db.beginTransaction()
      const order = await insert('INSERT INTO orders (g) VALUES (?)', [g])
      const item = await insert('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', [g])
      await db.commit()
      console.log(`${g} order=${order.insertId} item=${item.insertId}`)
    },
    async rollback (g) {
      await db.beginTransaction()
      const r = await insert('INSERT INTO orders (g) VALUES (?)', [g])
      await db.rollback()
      console.log(`${g} key=${r.insertId}`)
      await rows(g)
    },
    async upsert (g) {
      for (const n of [1, 2, 2]) {
        const r = await insert("INSERT INTO orders (g, n, u) VALUES (?, ?, 'up') ON DUPLICATE KEY UPDATE n=VALUES(n)", [g, n])
        console.log(`${g} key=${r.insertId} affected=${r.affectedRows} last=${await last()}`)
      }
      for (let i = 0; i < 2; i++) {
        const r = await insert("INSERT IGNORE INTO orders (g, u) VALUES (?, 'ig')", [g])
        console.log(`${g} key=${r.insertId} affected=${r.affectedRows} warnings=${r.warningStatus}`)
      }
      await rows(g)
    },
    async failed (g) {
      const parent = await insert("INSERT INTO orders (g, u) VALUES (?, 'fail')", [g])
      try {
        await insert("INSERT INTO orders (g, u) VALUES (?, 'fail')", [g])
      } catch (e) {
        console.log(`${g} failed=${code(e)} state=${e.sqlState}`)
      }
      const child = await insert('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', [g])
      console.log(`${g} parent=${parent.insertId} child=${child.insertId}`)
    },
    async explicit (g) {
      const r = await insert('INSERT INTO orders (id, g) VALUES (?, ?)', [42, g])
      console.log(`${g} key=${r.insertId} last=${await last()}`)
    },
    async zero (g) {
      for (const id of [null, 0, '0', 43, null]) {
        const r = await insert('INSERT INTO orders (id, g) VALUES (?, ?)', [id, g])
        console.log(`${g} key=${r.insertId}`)
      }
      await rows(g)
    },
    async plain (g) {
      const r = await insert('INSERT INTO plain (s) VALUES (?), (?)', [g, g])
      console.log(`${g} key=${r.insertId} affected=${r.affectedRows}`)
    }
  }
  if (version.includes('MariaDB')) {
    scenarios.returning = async g => {
      const got = await insert('INSERT INTO orders (g, n) VALUES (?, 1), (?, 2) RETURNING id, n', [g, g])
      console.log(`${g} rows=${got.map(show).join(',')}`)
    }
  }
  if (method === 'query') {
    scenarios.values = async g => {
      const r = await db.query('INSERT INTO orders (g, n) VALUES ?', [[[g, 1], [g, null], [g, 3]]])
      console.log(`${g} key=${r[0].insertId} affected=${r[0].affectedRows}`)
      const set = await db.query('INSERT INTO orders SET ?', { g, n: 4, s: null })
      console.log(`${g} key=${set[0].insertId}`)
      await rows(g)
    }
    scenarios.multi = async g => {
      const [all] = await db.query("INSERT INTO orders (g) VALUES (?); INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), 'm'); SELECT LAST_INSERT_ID() AS id", [g])
      console.log(`${g} key=${all[0].insertId} child=${all[1].insertId} last=${all[2][0].id}`)
    }
  }
  await run(scenarios, () => db.end())
}
main()
