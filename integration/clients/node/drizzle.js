// Drizzle over mysql2: it names the id as DEFAULT. What it calls prepared is text as well.
'use strict'
const mysql = require('mysql2/promise')
const { drizzle } = require('drizzle-orm/mysql2')
const { mysqlTable, bigint, varchar, int } = require('drizzle-orm/mysql-core')
const { eq, sql } = require('drizzle-orm')
const { config, show, code, run } = require('./common')

const key = () => bigint('id', { mode: 'number' }).autoincrement().primaryKey()
const orders = mysqlTable('orders', { id: key(), g: varchar('g', { length: 40 }).notNull(), n: int('n'), s: varchar('s', { length: 60 }), u: varchar('u', { length: 40 }) })
const items = mysqlTable('items', { id: key(), order_id: bigint('order_id', { mode: 'number' }), s: varchar('s', { length: 60 }) })
const plain = mysqlTable('plain', { id: key(), s: varchar('s', { length: 60 }) })

async function main () {
  const client = await mysql.createConnection(config)
  const db = drizzle(client)
  const rows = async g => {
    for (const row of await db.select({ id: orders.id, n: orders.n, s: orders.s, u: orders.u }).from(orders).where(eq(orders.g, g)).orderBy(orders.id)) console.log(`${g} row=${show(row)}`)
  }
  await run({
    async single (g) {
      const [r] = await db.insert(orders).values({ g, n: 1, s: "it's \\ ü" })
      console.log(`${g} key=${r.insertId} affected=${r.affectedRows}`)
      await rows(g)
    },
    async batch (g) {
      const keys = await db.insert(orders).values([{ g, n: 1 }, { g, n: null }, { g, s: 'c' }]).$returningId()
      console.log(`${g} keys=${keys.map(k => k.id).join(',')}`)
      await rows(g)
    },
    async mixed (g) {
      await db.insert(orders).values([{ g, n: 1 }, { id: 41, g }, { g }])
      await rows(g)
    },
    async repeated (g) {
      const prepared = db.insert(orders).values({ g, n: sql.placeholder('n') }).prepare()
      for (const n of [1, null, 3]) console.log(`${g} key=${(await prepared.execute({ n }))[0].insertId}`)
      await rows(g)
    },
    async commit (g) {
      await db.transaction(async t => {
        const [order] = await t.insert(orders).values({ g })
        const [item] = await t.insert(items).values({ order_id: sql`LAST_INSERT_ID()`, s: g })
        console.log(`${g} order=${order.insertId} item=${item.insertId}`)
      })
    },
    async rollback (g) {
      await db.transaction(async t => {
        const [r] = await t.insert(orders).values({ g })
        console.log(`${g} key=${r.insertId}`)
        t.rollback()
      }).catch(e => { if (e.constructor.name !== 'TransactionRollbackError') throw e })
      await rows(g)
    },
    async upsert (g) {
      for (const n of [1, 2, 2]) {
        const [r] = await db.insert(orders).values({ g, n, u: 'up' }).onDuplicateKeyUpdate({ set: { n: sql`values(n)` } })
        console.log(`${g} key=${r.insertId} affected=${r.affectedRows}`)
      }
      for (let i = 0; i < 2; i++) {
        const [r] = await db.insert(orders).ignore().values({ g, u: 'ig' })
        console.log(`${g} key=${r.insertId} affected=${r.affectedRows}`)
      }
      await rows(g)
    },
    async failed (g) {
      const [parent] = await db.insert(orders).values({ g, u: 'fail' })
      await db.insert(orders).values({ g, u: 'fail' }).catch(e => console.log(`${g} failed=${code(e)}`))
      const [child] = await db.insert(items).values({ order_id: sql`LAST_INSERT_ID()`, s: g })
      console.log(`${g} parent=${parent.insertId} child=${child.insertId}`)
    },
    async explicit (g) {
      const [r] = await db.insert(orders).values({ id: 42, g })
      console.log(`${g} key=${r.insertId}`)
    },
    async plain (g) {
      const [r] = await db.insert(plain).values([{ s: g }, { s: g }])
      console.log(`${g} key=${r.insertId}`)
    }
  }, () => client.end())
}
main()
