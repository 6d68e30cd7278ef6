package initial

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Grants are the statements that give the accounts what they need, server by server. What is there
// already they do not change.
func (p *Plan) Grants() (list []string) {
	for i, shard := range p.survey.Shards {
		said := p.survey.said[i]
		list = append(list, fmt.Sprintf("-- on %s (%s), for idproxy itself:", shard.Name, shard.At))
		for _, schema := range said.schemas() {
			list = append(list, fmt.Sprintf("GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON %s.* TO %s;", granted(schema), said.account))
		}
		if p.Switch != "" {
			for _, schema := range said.schemas() {
				list = append(list, fmt.Sprintf("GRANT ALTER, CREATE, INSERT ON %s.* TO %s; -- for idproxy migrate; or name another account there", granted(schema), said.account))
			}
		}
		list = append(list, fmt.Sprintf("GRANT SELECT ON `mysql`.* TO %s;", said.account))
		if !said.mariaDB {
			list = append(list, fmt.Sprintf("GRANT SHOW_ROUTINE ON *.* TO %s;", said.account))
		}
		if i == 0 && p.store() == "mysql" {
			list = append(list, fmt.Sprintf("CREATE DATABASE IF NOT EXISTS `%s`;", stateDatabase),
				fmt.Sprintf("GRANT CREATE, SELECT, INSERT, UPDATE, DELETE ON `%s`.* TO %s;", stateDatabase, said.account))
		}
	}
	list = append(list, "-- on each server, for the application's account, which needs SELECT beside INSERT:")
	schemas := map[string]bool{}
	for _, said := range p.survey.said {
		for _, schema := range said.schemas() {
			schemas[schema] = true
		}
	}
	for _, schema := range slices.Sorted(maps.Keys(schemas)) {
		list = append(list, fmt.Sprintf("-- GRANT SELECT, INSERT ON %s.* TO 'app'@'%%';", granted(schema)))
	}
	return list
}

// schemas are those of a server that have tables with ids.
func (s *said) schemas() []string {
	all := map[string]bool{}
	for of, t := range s.tables {
		if _, why := t.id(); why == "" && of.schema != stateDatabase {
			all[of.schema] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// granted writes a schema as GRANT has it, where _ and % are wildcards.
func granted(schema string) string {
	return "`" + strings.NewReplacer("`", "``", "_", `\_`, "%", `\%`).Replace(schema) + "`"
}
