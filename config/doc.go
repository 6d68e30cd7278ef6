// Package config reads the YAML file of idproxy: its structs, its strict
// loading and every check that needs nothing but the file and the environment.
//
// [Load] and [Parse] return either a complete [Config] or [Errors]: every
// problem of the file at once, each with file, line and column and with words
// on what to do. A Config they return has its defaults filled in, its names
// resolved (a rule's source exists, a source's store exists) and its paths
// joined to the folder of the file, so that a consumer checks nothing again.
//
// What the package does not do: it opens no connection, no certificate and no
// store. Whether an address answers, a certificate is readable or a table has
// the column of its rule is found out by those who use it.
//
// A Config is not changed after Parse and may be read by many goroutines.
// Passwords, tokens and DSNs are of type [Secret], which prints as stars under
// every verb, in JSON and in slog; no error message carries them.
package config
