"""Answers each line with the next id of orders, from the Redis Cluster that HOST PORT belongs to."""

import sys

from redis.cluster import RedisCluster
from redis.exceptions import RedisError

client = RedisCluster(host=sys.argv[1], port=int(sys.argv[2]), require_full_coverage=False)
for _ in sys.stdin:
    try:
        print(client.incr("orders"), flush=True)
    except RedisError as error:
        print("error:", error, flush=True)
