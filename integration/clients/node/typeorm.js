// TypeORM over mysql2: it names the id as DEFAULT.
'use strict'
require('reflect-metadata')
const { DataSource, EntitySchema } = require('typeorm')
const { config, show, code, run } = require('./common')

const id = { type: 'bigint', primary: true, generated: 'increment' }
const text = { type: 'varchar', nullable: true }
const Order = new EntitySchema({
  name: 'orders', columns: { id, g: { type: 'varchar' }, n: { type: 'int', nullable: true }, s: text, u: { ...text, unique: true } },
  relations: { items: { type: 'one-to-many', target: 'items', inverseSide: 'order', cascade: true } }
})
const Item = new EntitySchema({
  name: 'items', columns: { id, s: text },
  relations: { order: { type: 'many-to-one', target: 'orders', inverseSide: 'items', joinColumn: { name: 'order_id' } } }
})
const Plain = new EntitySchema({ name: 'plain', columns: { id, s: text } })

async function main () {
  const { user, ...rest } = config
  const db = new DataSource({ type: 'mysql', username: user, ...rest, entities: [Order, Item, Plain], extra: { connectionLimit: 1 } })
  await db.initialize()
  const orders = db.getRepository('orders')
  const rows = async g => {
    for (const o of await orders.find({ where: { g }, order: { id: 'ASC' } })) console.log(`${g} row=${show({ id: o.id, n: o.n, s: o.s, u: o.u })}`)
  }
  await run({
    async single (g) {
      const order = await orders.save({ g, n: 1, s: "it's \\ ü" })
      console.log(`${g} key=${order.id}`)
      await rows(g)
    },
    async batch (g) {
      const r = await orders.insert([{ g, n: 1 }, { g, n: null }, { g, s: 'c' }])
      console.log(`${g} keys=${r.identifiers.map(i => i.id).join(',')} affected=${r.raw.affectedRows}`)
      const saved = await orders.save([{ g, n: 4 }, { g, n: 5 }])
      console.log(`${g} keys=${saved.map(o => o.id).join(',')}`)
      await rows(g)
    },
    async mixed (g) {
      await orders.createQueryBuilder().insert().values([{ g, n: 1 }, { id: 41, g }, { id: null, g }]).updateEntity(false).execute()
      await rows(g)
    },
    async children (g) {
      const order = await orders.save({ g, items: [{ s: 'a' }, { s: 'b' }] })
      console.log(`${g} order=${order.id} items=${order.items.map(i => i.id).join(',')}`)
    },
    async rollback (g) {
      await db.transaction(async m => {
        const order = await m.save('orders', { g })
        console.log(`${g} key=${order.id}`)
        throw new Error('back')
      }).catch(e => { if (e.message !== 'back') throw e })
      await rows(g)
    },
    async upsert (g) {
      for (const n of [1, 2, 2]) {
        const r = await orders.upsert({ g, n, u: 'up' }, ['u'])
        console.log(`${g} key=${r.raw.insertId} affected=${r.raw.affectedRows}`)
      }
      for (let i = 0; i < 2; i++) {
        const r = await orders.createQueryBuilder().insert().orIgnore().values({ g, u: 'ig' }).updateEntity(false).execute()
        console.log(`${g} key=${r.raw.insertId} affected=${r.raw.affectedRows}`)
      }
      await rows(g)
    },
    async failed (g) {
      const parent = await orders.save({ g, u: 'fail' })
      await orders.insert({ g, u: 'fail' }).catch(e => console.log(`${g} failed=${code(e)}`))
      const r = await db.query('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)', [g])
      console.log(`${g} parent=${parent.id} child=${r.insertId}`)
    },
    async explicit (g) {
      await orders.insert({ id: 42, g })
      await rows(g)
    },
    async zero (g) {
      const r = await orders.insert({ id: null, g })
      console.log(`${g} key=${r.identifiers[0].id}`)
      await rows(g)
    },
    async plain (g) {
      console.log(`${g} key=${(await db.getRepository('plain').save({ s: g })).id}`)
    }
  }, () => db.destroy())
}
main()
