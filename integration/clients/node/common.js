// What the scripts share.
'use strict'

exports.config = {
  host: process.env.CLIENT_HOST, port: Number(process.env.CLIENT_PORT), user: process.env.CLIENT_USER,
  password: process.env.CLIENT_PASSWORD, database: process.env.CLIENT_DATABASE
}

exports.show = row => Object.values(row).map(v => v === null ? 'NULL' : v).join('/')

// code is the server's error number, also of an error that another one wraps.
const code = e => {
  for (let at = e; at; at = at.cause || at.original || at.parent || at.driverError) if (at.errno) return at.errno
  return String(e && e.stack).replace(/\s+/g, '_')
}
exports.code = code

// run runs the scenarios one after another; one that fails reports its error.
exports.run = async (scenarios, close) => {
  for (const [name, body] of Object.entries(scenarios)) {
    try {
      await body(name)
    } catch (e) {
      console.log(`${name} error=${code(e)}`)
    }
  }
  await close()
}
