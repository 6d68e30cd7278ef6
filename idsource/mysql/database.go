package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Server is what one server of a store says of itself.
type Server struct {
	Where    string // as configured, without account and password
	Identity string // the same for whoever reaches the same database, by whatever address
	Weak     string // why a crash of its host can bring ids back; "": it cannot
}

// Servers asks what the store's server is.
func (s *Store) Servers(ctx context.Context) ([]Server, error) {
	const query = "SHOW GLOBAL VARIABLES WHERE Variable_name IN " +
		"('hostname', 'port', 'datadir', 'server_uuid', 'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog')"
	v, err := variables(ctx, s.db, query)
	if err != nil {
		return nil, s.wrap(err)
	}
	var database string
	if err := s.db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
		return nil, s.wrap(err)
	}
	return []Server{{
		Where:    s.where,
		Identity: fmt.Sprintf("%s %s %s %s %s", v["hostname"], v["port"], v["datadir"], v["server_uuid"], database),
		Weak:     weakness(v),
	}}, nil
}

// weakness says which settings make a server forget commits in a crash of its host. With a
// binary log the tail of that decides, after a crash, what was committed. MariaDB's 3 syncs
// as 1 does.
func weakness(variables map[string]string) string {
	var weak []string
	if v := variables["innodb_flush_log_at_trx_commit"]; v == "0" || v == "2" {
		weak = append(weak, "innodb_flush_log_at_trx_commit is "+v)
	}
	if v := variables["sync_binlog"]; v != "1" && v != "" && variables["log_bin"] == "ON" {
		weak = append(weak, "sync_binlog is "+v)
	}
	if weak == nil {
		return ""
	}
	return strings.Join(weak, " and ") + ", not 1"
}

// WarnOfCrashes logs, once, that the server may forget what it committed.
func (s *Store) WarnOfCrashes(ctx context.Context) error {
	if s.warned.Load() {
		return nil
	}
	servers, err := s.Servers(ctx)
	if err != nil {
		return err // asked again at the next call
	}
	if weak := servers[0].Weak; weak != "" && !s.warned.Swap(true) {
		s.logger.Warn("a crash of the store's host can bring ids back that were issued", "store", s.where, "cause", weak)
	}
	s.warned.Store(true)
	return nil
}

// Servers asks what the group's servers are. Those that do not answer are in the error.
func (g *Group) Servers(ctx context.Context) (all []Server, err error) {
	found, errs := each(ctx, g, func(ctx context.Context, m *member) ([]Server, error) { return m.Servers(ctx) })
	for _, servers := range found {
		all = append(all, servers...)
	}
	return all, errors.Join(errs...)
}

// WarnOfCrashes logs, once for each server, that it may forget what it committed. A server
// that forgot is found out by the others, as long as one of them answers.
func (g *Group) WarnOfCrashes(ctx context.Context) error {
	errs := make([]error, len(g.members))
	var wg sync.WaitGroup
	for i, m := range g.members {
		wg.Go(func() { errs[i] = m.Store.WarnOfCrashes(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Places are the databases of the group, without accounts and passwords.
func (g *Group) Places() (places []string) {
	for _, m := range g.members {
		places = append(places, m.where)
	}
	return places
}
