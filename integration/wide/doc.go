// Package wide is ids that are no numbers: UUIDs and ObjectIds in columns of text and bytes.
package wide
