// Package pages does what the pages for users show: each configuration, each command, the quick start.
//
// A wide run takes place in a network and with a folder /etc of its own, in which the hosts and addresses
// of pages exist and lead to real servers. So what a page shows is run as it stands:
//
//   - A configuration gets what the page leaves out, `idproxy check --online` looks at it, `idproxy serve`
//     runs with it, and a row goes into each table of its rules.
//   - The lines of a block are run in their order, with what they print compared where the page shows it.
//     lineKinds and blockKinds say how, and why some are not.
//   - Commands that stand in sentences are those of spoken.
//   - Translations have the blocks and the commands of their pages, which are run once.
//
// A section of a page begins on a host where idproxy is installed. Other runs only read: configurations
// are parsed, and each command of a sentence is in the list.
package pages
