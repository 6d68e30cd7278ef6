// mysql2 with its pool, of one connection.
'use strict'
const { setTimeout } = require('node:timers/promises')
const mysql = require('mysql2/promise')
const { config } = require('./common')

const show = (what, e) => console.log(`${what} ${e.errno} ${e.sqlState} ${e.code} ${e.message}`)

async function main () {
  const pool = mysql.createPool({ ...config, connectionLimit: 1 })
  const connection = await pool.getConnection()
  await connection.query("INSERT INTO orders (g) VALUES ('lose me')").catch(e => show('lost', e))
  connection.release()
  while (pool.pool._allConnections.length > 0) await setTimeout(1) // it is dropped once its end was seen
  const [r] = await pool.query("INSERT INTO orders (g) VALUES ('again')")
  console.log(`again key=${r.insertId}`)
  await pool.end()
  await mysql.createConnection({ ...config, port: Number(process.env.CLIENT_PORT_DOWN) }).catch(e => show('connect', e))
}

main()
