// Package fleet has a fleet of idproxy programs live through what fleets live through: `make fleet`
// starts sixteen with sixty-four listeners each, has ids given for a thousand tables, kills and
// restarts them, takes the store away and brings a shard by a reload. It prints what that takes, for
// docs/sizing.md, and looks at all rows for an id that came twice.
package fleet
