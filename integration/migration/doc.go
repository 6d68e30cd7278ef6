// Package migration tests how tables that count by themselves come to have their ids from idproxy, and
// back: the switch that all proxies watch, and idproxy migrate, which turns it.
package migration
