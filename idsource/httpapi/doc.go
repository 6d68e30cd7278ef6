// Package httpapi hands out ids to other programs over HTTP, in three ways:
//
//	POST /v1/ids            {"key": "order_id", "n": 100}: a range of a segment, a list of any other source
//	GET  /v1/decode         what an id tells: ?key=event_id&id=7264318466326528001
//	GET  /v1/openapi.json   the description of all paths, for programs (OpenAPI 3.1)
//
//	GET  /api/segment/get/KEY, /api/snowflake/get/KEY     as the server of Meituan's Leaf answers
//
//	GET  /tinyid/id/nextId, nextIdSimple, nextSegmentId, nextSegmentIdSimple     as that of DiDi's tinyid
//
// What Leaf and tinyid do is read from LeafController (Meituan-Dianping/Leaf, leaf-server) and from
// IdContronller and HttpSegmentIdServiceImpl (didi/tinyid). The file of each says where this
// server differs.
//
// An id is never given twice, also when an answer is lost or the client is gone: it is a gap then.
// Nothing is drawn that was not asked for, and no answer may be kept by a cache.
//
// A Server owns its listener and its connections. HTTP/1.1 and HTTP/2 are those of net/http.
package httpapi
