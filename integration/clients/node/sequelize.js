// Sequelize over mysql2: it names the id as DEFAULT. Single rows are prepared by the server, several rows are text.
'use strict'
const { Sequelize, DataTypes } = require('sequelize')
const { config, show, code, run } = require('./common')

const db = new Sequelize(config.database, config.user, config.password, {
  dialect: 'mysql', host: config.host, port: config.port, logging: false, pool: { min: 1, max: 1 }, define: { timestamps: false, freezeTableName: true }
})
const id = { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true }
const Order = db.define('orders', { id, g: DataTypes.STRING, n: DataTypes.INTEGER, s: DataTypes.STRING, u: { type: DataTypes.STRING, unique: true } })
const Item = db.define('items', { id, order_id: DataTypes.BIGINT, s: DataTypes.STRING })
const Plain = db.define('plain', { id, s: DataTypes.STRING })
Order.hasMany(Item, { foreignKey: 'order_id' })

const rows = async g => {
  const all = await Order.findAll({ where: { g }, order: ['id'], raw: true, attributes: ['id', 'n', 's', 'u'] })
  for (const row of all) console.log(`${g} row=${show(row)}`)
}

run({
  async single (g) {
    const order = await Order.create({ g, n: 1, s: "it's \\ ü" })
    console.log(`${g} key=${order.id}`)
    await order.update({ n: 2 })
    await rows(g)
  },
  async batch (g) {
    const all = await Order.bulkCreate([{ g, n: 1 }, { g, n: null }, { g, s: 'c' }])
    console.log(`${g} keys=${all.map(o => o.id).join(',')}`)
    await rows(g)
  },
  async mixed (g) {
    await Order.bulkCreate([{ g, n: 1 }, { id: 41, g }, { id: null, g }])
    await rows(g)
  },
  async children (g) {
    const order = await Order.create({ g, items: [{ s: 'a' }, { s: 'b' }] }, { include: [Item] })
    const read = await Order.findByPk(order.id, { include: [Item] })
    console.log(`${g} order=${order.id} items=${read.items.map(i => i.id).sort().join(',')}`)
  },
  async rollback (g) {
    await db.transaction(async transaction => {
      const order = await Order.create({ g }, { transaction })
      console.log(`${g} key=${order.id}`)
      throw new Error('back')
    }).catch(e => { if (e.message !== 'back') throw e })
    await rows(g)
  },
  async upsert (g) {
    for (const n of [1, 2, 2]) {
      const [order, created] = await Order.upsert({ g, n, u: 'up' })
      console.log(`${g} key=${order.id} created=${created}`)
    }
    await Order.bulkCreate([{ g, u: 'up', n: 7 }, { g, u: 'new', n: 8 }], { updateOnDuplicate: ['n'] })
    await Order.bulkCreate([{ g, u: 'up' }], { ignoreDuplicates: true })
    const [found, created] = await Order.findOrCreate({ where: { g, u: 'found' } })
    console.log(`${g} key=${found.id} created=${created}`)
    await rows(g)
  },
  async failed (g) {
    const parent = await Order.create({ g, u: 'fail' })
    await Order.create({ g, u: 'fail' }).catch(e => console.log(`${g} failed=${code(e)}`))
    const [child] = await db.query('INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), :g)', { replacements: { g }, type: 'INSERT' })
    console.log(`${g} parent=${parent.id} child=${child}`)
  },
  async explicit (g) {
    console.log(`${g} key=${(await Order.create({ id: 42, g })).id}`)
  },
  async zero (g) {
    for (const id of [null, undefined]) console.log(`${g} key=${(await Order.create({ id, g })).id}`)
    await rows(g)
  },
  async bound (g) { // bound values are sent by a prepared statement
    const [key] = await db.query('INSERT INTO plain (s) VALUES ($1)', { bind: [g], type: 'INSERT' })
    console.log(`${g} key=${key}`)
  },
  async plain (g) {
    console.log(`${g} key=${(await Plain.create({ s: g })).id}`)
  }
}, () => db.close())
