// Answers each line with the next id of orders, from the Redis Cluster that HOST PORT belongs to.
const { Cluster } = require("ioredis");

const client = new Cluster([{ host: process.argv[2], port: Number(process.argv[3]) }], {
  clusterRetryStrategy: () => 100,
  slotsRefreshInterval: 500,
});
client.on("error", () => {}); // each command tells it, too
require("node:readline")
  .createInterface({ input: process.stdin })
  .on("line", async () => {
    try {
      console.log(await client.incr("orders"));
    } catch (error) {
      console.log("error:", error.message);
    }
  })
  .on("close", () => client.disconnect());
