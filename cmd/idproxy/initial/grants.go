package initial

import (
	"fmt"
	"maps"
	"slices"
)

// Grants are the statements that give the accounts what they need, server by server. What is there
// already they do not change, nor take its place.
func (p *Plan) Grants() (list []string) {
	for i, shard := range p.survey.Shards {
		said := p.survey.said[i]
		list = append(list, fmt.Sprintf("-- on %s (%s), for idproxy itself:", shard.Name, shard.At))
		granted := map[string]bool{} // one pattern may be for several schemas
		for _, schema := range said.schemas(p.database()) {
			if granted[said.Granted(schema)] {
				continue
			}
			granted[said.Granted(schema)] = true
			list = append(list, said.Grant("SELECT, SHOW VIEW, TRIGGER, EVENT", schema))
			if p.Switch != "" {
				list = append(list, said.Grant("ALTER, CREATE, INSERT", schema)+" -- for idproxy migrate; or name another account there")
			}
		}
		if !said.On("mysql", "SELECT") {
			list = append(list, said.Grant("SELECT", "mysql"))
		}
		if !said.MariaDB {
			list = append(list, said.GrantEverywhere("SHOW_ROUTINE"))
		}
		if i == 0 && p.store() == "mysql" {
			list = append(list, fmt.Sprintf("CREATE DATABASE IF NOT EXISTS `%s`;", stateDatabase),
				said.Grant("CREATE, SELECT, INSERT, UPDATE, DELETE", stateDatabase))
		}
	}
	list = append(list, "-- on each server, for the application's account, which needs SELECT beside INSERT. Write the schema as SHOW GRANTS has it for",
		"-- the account, a _ with \\ in front or without: a grant of the other form takes the place of the one that is there, and its rights are lost.")
	schemas := map[string]bool{}
	for _, said := range p.survey.said {
		for _, schema := range said.schemas(p.database()) {
			schemas[said.Whole(schema)] = true
		}
	}
	for _, schema := range slices.Sorted(maps.Keys(schemas)) {
		list = append(list, fmt.Sprintf("-- GRANT SELECT, INSERT ON %s.* TO 'app'@'%%';", schema))
	}
	return list
}

// schemas are those of a server that have tables with ids, but for one.
func (s *said) schemas(but string) []string {
	all := map[string]bool{}
	for of, t := range s.tables {
		if _, why := t.id(); why == "" && of.schema != but {
			all[of.schema] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
