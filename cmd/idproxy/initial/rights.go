package initial

import (
	"context"
	"slices"
	"strings"

	"idproxy/pattern"
)

// rights are an account as a server knows it, and what it may read there.
type rights struct {
	account string // 'user'@'host'
	mariaDB bool
	fold    bool // the server compares names of tables without regard to case
	global  bool // it has SELECT ON *.*
	revoked []string
	schemas []schemaGrant
}

// schemaGrant is what an account has on the schemas of a pattern. Of those that match a schema the server
// takes one, the most specific, and no right of another:
// https://dev.mysql.com/doc/refman/8.4/en/grant-tables.html.
type schemaGrant struct {
	pattern string // as GRANT has it, without quotes
	selects bool
}

// rights asks the server.
func (r *reader) rights(ctx context.Context) (g rights, err error) {
	var as, version string
	if err := r.DB.QueryRowContext(ctx, "SELECT CURRENT_USER(), VERSION(), @@lower_case_table_names <> 0").Scan(&as, &version, &g.fold); err != nil {
		return g, err
	}
	user, host := as, "%"
	if at := strings.LastIndexByte(as, '@'); at >= 0 {
		user, host = as[:at], as[at+1:]
	}
	g.account = quoteText(user) + "@" + quoteText(host)
	g.mariaDB = strings.Contains(version, "MariaDB")
	return g, r.Each(ctx, "SHOW GRANTS", func(row []string) { g.read(row[0]) })
}

// read reads a row of SHOW GRANTS.
func (g *rights) read(row string) {
	what, on, _ := strings.Cut(row, " ON ")
	verb, list, _ := strings.Cut(what, " ")
	selects := false
	for right := range strings.SplitSeq(strings.ToUpper(list), ",") {
		right = strings.TrimSpace(right)
		selects = selects || right == "SELECT" || right == "ALL PRIVILEGES"
	}
	pattern, ofSchema := onSchema(on)
	switch {
	case verb == "REVOKE" && ofSchema && selects: // MySQL's partial_revokes
		g.revoked = append(g.revoked, pattern)
	case verb == "GRANT" && strings.HasPrefix(on, "*.*"):
		g.global = g.global || selects
	case verb == "GRANT" && ofSchema:
		g.schemas = append(g.schemas, schemaGrant{pattern, selects})
	}
}

// onSchema reads what stands behind ON, where that is a whole schema.
func onSchema(on string) (pattern string, ok bool) {
	if on == "" || on[0] != '`' && on[0] != '"' {
		pattern, _, ok = strings.Cut(on, ".* ")
		return pattern, ok && pattern != "*" && !strings.Contains(pattern, " ")
	}
	quote := on[:1]
	for at := 1; at < len(on); at++ {
		switch {
		case on[at] != quote[0]:
		case at+1 < len(on) && on[at+1] == quote[0]:
			at++
		default:
			return strings.ReplaceAll(on[1:at], quote+quote, quote), strings.HasPrefix(on[at+1:], ".* ")
		}
	}
	return "", false
}

// all reports whether the account sees every table of the server.
func (g *rights) all() bool { return g.global && len(g.revoked) == 0 }

// sees reports whether the account sees every table of a schema, be there such a schema or not.
func (g *rights) sees(schema string) bool {
	if g.global && !slices.Contains(g.revoked, schema) {
		return true
	}
	grant := g.of(schema)
	return grant != nil && grant.selects
}

// of returns the grant that counts for a schema; nil: there is none.
func (g *rights) of(schema string) (found *schemaGrant) {
	for i := range g.schemas {
		s := &g.schemas[i]
		if matches(s.pattern, schema, g.fold) && (found == nil || certain(s.pattern) > certain(found.pattern)) {
			found = s
		}
	}
	return found
}

// granted writes a schema as GRANT has it: in the form of the grant that counts now, where there is one.
// A grant of another form would take its place, and the rights that it has be lost.
func (g *rights) granted(schema string) string {
	if found := g.of(schema); found != nil {
		return "`" + strings.ReplaceAll(found.pattern, "`", "``") + "`"
	}
	return granted(schema)
}

// granted writes a schema as GRANT has it, where _ and % are wildcards.
func granted(schema string) string {
	return "`" + strings.NewReplacer("`", "``", "_", `\_`, "%", `\%`).Replace(schema) + "`"
}

// certain is how many characters of a pattern stand in front of its first wildcard: by that servers say
// which of two is the more specific.
func certain(pattern string) int {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '_', '%':
			return i
		}
	}
	return 1 << 10 // it has none, and no name is so long
}

// matches reports whether a pattern of GRANT is for a schema.
func matches(of, schema string, fold bool) bool {
	if fold {
		of, schema = pattern.Fold(of), pattern.Fold(schema)
	}
	return like([]rune(of), []rune(schema))
}

func like(of, text []rune) bool {
	for len(of) > 0 {
		switch c := of[0]; {
		case c == '%':
			for i := range len(text) + 1 {
				if like(of[1:], text[i:]) {
					return true
				}
			}
			return false
		case len(text) == 0:
			return false
		case c == '\\' && len(of) > 1:
			if of[1] != text[0] {
				return false
			}
			of, text = of[2:], text[1:]
		case c == '_' || c == text[0]:
			of, text = of[1:], text[1:]
		default:
			return false
		}
	}
	return len(text) == 0
}

// quoteText writes a text as SQL does.
func quoteText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s) + "'"
}
