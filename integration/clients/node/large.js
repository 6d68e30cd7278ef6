// Ids above 2^53, which numbers of JavaScript cannot hold: what a driver shows under each setting.
'use strict'
const mysql2 = require('mysql2/promise')
const mariadb = require('mariadb')
const { config } = require('./common')

const insert = 'INSERT INTO orders (g) VALUES (?)'
const select = 'SELECT CAST(id AS CHAR) AS text, id FROM orders WHERE g = ? ORDER BY id'

// report says of which type an id is, and whether it is the one that the row has.
const report = (name, inserted, rows) => {
  const shown = (v, row) => `${typeof v}${String(v) === row.text ? '' : ' (wrong)'}`
  console.log(`${name}: insert id ${inserted.map((v, i) => shown(v, rows[i])).join(' and ')}, in a result ${shown(rows[0].id, rows[0])}`)
}

async function withMysql2 (name, options) {
  const c = await mysql2.createConnection({ ...config, ...options })
  const inserted = [(await c.query(insert, [name]))[0].insertId, (await c.execute(insert, [name]))[0].insertId]
  report(name, inserted, (await c.query(select, [name]))[0])
  await c.end()
}

async function withMariadb (name, options) {
  const c = await mariadb.createConnection({ ...config, allowPublicKeyRetrieval: true, ...options })
  const inserted = [(await c.query(insert, [name])).insertId, (await c.execute(insert, [name])).insertId]
  report(name, inserted, await c.query(select, [name]))
  await c.end()
}

async function main () {
  await withMysql2('mysql2', {})
  await withMysql2('mysql2, supportBigNumbers', { supportBigNumbers: true })
  await withMariadb('mariadb', {})
  await withMariadb('mariadb, insertIdAsNumber', { insertIdAsNumber: true })
  await withMariadb('mariadb, bigIntAsNumber', { bigIntAsNumber: true })
}

main()
