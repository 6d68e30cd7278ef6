// Package ordered tests series whose ids are in one order over all proxies, with real proxies and a
// real etcd.
package ordered
