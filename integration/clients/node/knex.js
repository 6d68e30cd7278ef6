// Knex over mysql2. Its rows of several shapes name missing values as DEFAULT.
'use strict'
const knex = require('knex')
const { config, show, code, run } = require('./common')

const db = knex({ client: 'mysql2', connection: config, pool: { min: 1, max: 1 } })

const rows = async g => {
  for (const row of await db('orders').select('id', 'n', 's', 'u').where({ g }).orderBy('id')) console.log(`${g} row=${show(row)}`)
}

run({
  async single (g) {
    const [key] = await db('orders').insert({ g, n: 1, s: "it's \\ ü" })
    console.log(`${g} key=${key}`)
    await rows(g)
  },
  async batch (g) {
    const [key] = await db('orders').insert([{ g, n: 1 }, { g, n: null }, { g, s: 'c' }])
    console.log(`${g} key=${key}`)
    await rows(g)
  },
  async mixed (g) {
    const [key] = await db('orders').insert([{ g, n: 1 }, { id: 41, g }, { id: null, g }, { g, n: 4 }])
    console.log(`${g} key=${key}`)
    await rows(g)
  },
  async chunks (g) {
    const keys = await db.batchInsert('orders', [1, 2, 3, 4, 5].map(n => ({ g, n })), 2)
    console.log(`${g} ${keys.map(key => `key=${key}`).join(' ')}`)
    await rows(g)
  },
  async commit (g) {
    const [order, item] = await db.transaction(async t => {
      const [order] = await t('orders').insert({ g })
      const [item] = await t('items').insert({ order_id: db.raw('LAST_INSERT_ID()'), s: g })
      return [order, item]
    })
    console.log(`${g} order=${order} item=${item}`)
  },
  async rollback (g) {
    await db.transaction(async t => {
      const [key] = await t('orders').insert({ g })
      console.log(`${g} key=${key}`)
      throw new Error('back')
    }).catch(e => { if (e.message !== 'back') throw e })
    await rows(g)
  },
  async upsert (g) {
    for (const n of [1, 2, 2]) {
      const [key] = await db('orders').insert({ g, n, u: 'up' }).onConflict('u').merge()
      console.log(`${g} key=${key}`)
    }
    for (let i = 0; i < 2; i++) {
      const [key] = await db('orders').insert({ g, u: 'ig' }).onConflict('u').ignore()
      console.log(`${g} key=${key}`)
    }
    await rows(g)
  },
  async failed (g) {
    const [parent] = await db('orders').insert({ g, u: 'fail' })
    await db('orders').insert({ g, u: 'fail' }).catch(e => console.log(`${g} failed=${code(e)}`))
    const [child] = await db('items').insert({ order_id: db.raw('LAST_INSERT_ID()'), s: g })
    console.log(`${g} parent=${parent} child=${child}`)
  },
  async explicit (g) {
    const [key] = await db('orders').insert({ id: 42, g })
    console.log(`${g} key=${key}`)
  },
  async zero (g) {
    for (const id of [null, 0, undefined]) {
      const [key] = await db('orders').insert({ id, g })
      console.log(`${g} key=${key}`)
    }
    await rows(g)
  },
  async empty (g) {
    const [key] = await db('items').insert({})
    console.log(`${g} key=${key}`)
  },
  async plain (g) {
    const [key] = await db('plain').insert([{ s: g }, { s: g }])
    console.log(`${g} key=${key}`)
  }
}, () => db.destroy())
