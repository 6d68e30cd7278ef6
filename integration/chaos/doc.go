// Package chaos has the tests that harm running idproxy programs and the servers they depend on,
// and look whether an id comes twice: processes and servers are killed and stopped, members of
// etcd's cluster too, networks fail, the clocks of hosts and of stores are moved, and an operator
// moves a series between stores, and renames tables. `make chaos` runs them as long and as often as
// wanted, and adds up the ids.
package chaos
