// The mariadb connector: mariadb.js query | execute [bulk]
'use strict'
const mariadb = require('mariadb')
const { config, show, code, run } = require('./common')

const [method, bulk] = process.argv.slice(2)

async function main () {
  // Commands are pipelined by default: sent without waiting for the answers to those before.
  const db = await mariadb.createConnection({
    ...config, bulk: bulk === 'bulk', allowPublicKeyRetrieval: true, insertIdAsNumber: true, bigIntAsNumber: true
  })
  const insert = (sql, values) => db[method](sql, values)
  const last = async () => (await db.query('SELECT LAST_INSERT_ID() AS id'))[0].id
  const rows = async g => {
    for (const row of await db.query('SELECT id, n, s, u FROM orders WHERE g=? ORDER BY id', [g])) console.log(`${g} row=${show(row)}`)
  }
  const scenarios = {
    async single (g) {
      const r = await insert('INSERT INTO orders (g, n, s) VALUES (?, ?, ?)', [g, 1, "it's \\ ü"])
      console.log(`${g} key=${r.insertId} affected=${r.affectedRows} last=${await last()}`)
      await rows(g)
    },
    async repeated (g) {
      for (const [n, s] of [[1, 'a'], [null, 'b'], [3, null], [null, null], ['5', 6]]) {
        const r = await insert('INSERT INTO orders (g, n, s) VALUES (?, ?, ?)', [g, n, s])
        console.log(`${g} key=${r.insertId} affected=${r.affectedRows}`)
      }
      await rows(g)
    },
    async pipelined (g) {
      const all = await Promise.all([1, 2, 3, 4].map(n => insert('INSERT INTO orders (g, n) VALUES (?, ?)', [g, n])))
      console.log(`${g} ${all.map(r => `key=${r.insertId}`).join(' ')}`)
      const [a, b, c] = await Promise.all([insert('INSERT INTO orders (g, n) VALUES (?, 5)', [g]),
        insert('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', [g]), db.query('SELECT LAST_INSERT_ID() AS id')])
      console.log(`${g} key=${a.insertId} child=${b.insertId} last=${c[0].id}`)
      await rows(g)
    },
    async pipelined_failure (g) {
      const all = await Promise.allSettled(['pf', 'pf', 'other'].map(u => insert('INSERT INTO orders (g, u) VALUES (?, ?)', [g, u])))
      console.log(`${g} ${all.map(r => r.value ? `key=${r.value.insertId}` : `failed=${code(r.reason)}`).join(' ')}`)
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
      await rows(g)
    },
    async failed (g) {
      const parent = await insert("INSERT INTO orders (g, u) VALUES (?, 'fail')", [g])
      await insert("INSERT INTO orders (g, u) VALUES (?, 'fail')", [g]).catch(e => console.log(`${g} failed=${code(e)}`))
      const child = await insert('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', [g])
      console.log(`${g} parent=${parent.insertId} child=${child.insertId}`)
    },
    async explicit (g) {
      console.log(`${g} key=${(await insert('INSERT INTO orders (id, g) VALUES (?, ?)', [42, g])).insertId} last=${await last()}`)
    },
    async zero (g) {
      for (const id of [null, 0, '0', 43n, null]) {
        console.log(`${g} key=${(await insert('INSERT INTO orders (id, g) VALUES (?, ?)', [id, g])).insertId}`)
      }
      await rows(g)
    },
    async plain (g) {
      console.log(`${g} key=${(await insert('INSERT INTO plain (s) VALUES (?), (?)', [g, g])).insertId}`)
    }
  }
  if (db.info.isMariaDB()) {
    scenarios.returning = async g => {
      const got = await insert('INSERT INTO orders (g, n) VALUES (?, 1), (?, 2) RETURNING id, n', [g, g])
      console.log(`${g} rows=${got.map(show).join(',')}`)
    }
  }
  if (method === 'execute' || bulk) { // batches are prepared, whatever method is
    scenarios.batch = async g => {
      const r = await db.batch('INSERT INTO orders (g, n, s) VALUES (?, ?, ?)', [[g, 1, 'a'], [g, null, 'b'], [g, 3, null], [g, null, null]])
      const got = Array.isArray(r) ? r : [r]
      console.log(`${g} ${got.map(r => `key=${r.insertId} affected=${r.affectedRows}`).join(' ')}`)
      await rows(g)
    }
    scenarios.batch_results = async g => { // a result for each row, where the server has them
      const r = await db.batch({ sql: 'INSERT INTO orders (g, n) VALUES (?, ?)', fullResult: true }, [[g, 1], [g, null], [g, 3]])
      console.log(`${g} ${[r].flat().map(r => `key=${r.insertId} affected=${r.affectedRows}`).join(' ')}`)
      await rows(g)
    }
    scenarios.batch_ids = async g => {
      const r = await db.batch('INSERT INTO orders (id, g) VALUES (?, ?)', [[null, g], [41, g], [0, g], [null, g]])
      const got = Array.isArray(r) ? r : [r]
      console.log(`${g} affected=${got.map(r => r.affectedRows).join('+')}`)
      await rows(g)
    }
    if (db.info.isMariaDB()) {
      scenarios.returning_batch = async g => {
        const got = await db.batch('INSERT INTO orders (g, n) VALUES (?, ?) RETURNING id, n', [[g, 1], [g, 2]])
        console.log(`${g} rows=${got.flat().map(show).join(',')}`)
      }
    }
  }
  await run(scenarios, () => db.end())
}
main()
