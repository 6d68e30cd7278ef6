package upstream

import (
	"context"
	"slices"
	"strings"

	"idproxy/pattern"
)

// Rights are what an account may do on a server, as far as it was granted to the account by itself: what
// comes by a role is not looked for.
type Rights struct {
	Account string // 'user'@'host'
	fold    bool   // the server compares names of tables without regard to case
	global  []string
	revoked []schemaGrant // of the global ones, by MySQL's partial_revokes
	schemas []schemaGrant
}

// schemaGrant is what an account has on the schemas of a pattern. Of those that match a schema the server
// takes one, the most specific, and no right of another:
// https://dev.mysql.com/doc/refman/8.4/en/grant-tables.html.
type schemaGrant struct {
	pattern string // as GRANT has it, without quotes
	rights  []string
}

// Rights asks what the account may do.
func (u *Server) Rights(ctx context.Context) (*Rights, error) {
	var as string
	var fold bool
	if err := u.DB.QueryRowContext(ctx, "SELECT CURRENT_USER(), @@lower_case_table_names <> 0").Scan(&as, &fold); err != nil {
		return nil, err
	}
	user, host := as, "%"
	if at := strings.LastIndexByte(as, '@'); at >= 0 {
		user, host = as[:at], as[at+1:]
	}
	var rows []string
	err := u.Each(ctx, "SHOW GRANTS", func(row []string) { rows = append(rows, row[0]) })
	return ReadRights(quoteText(user)+"@"+quoteText(host), fold, rows...), err
}

// ReadRights reads the rows of SHOW GRANTS. fold is whether the server compares names of tables without
// regard to case.
func ReadRights(account string, fold bool, rows ...string) *Rights {
	g := &Rights{Account: account, fold: fold}
	for _, row := range rows {
		g.read(row)
	}
	return g
}

func (g *Rights) read(row string) {
	what, on, _ := strings.Cut(row, " ON ")
	verb, list, _ := strings.Cut(what, " ")
	var rights []string
	for right := range strings.SplitSeq(strings.ToUpper(list), ",") {
		rights = append(rights, strings.TrimSpace(right))
	}
	pattern, ofSchema := onSchema(on)
	switch {
	case verb == "REVOKE" && ofSchema:
		g.revoked = append(g.revoked, schemaGrant{pattern, rights})
	case verb == "GRANT" && strings.HasPrefix(on, "*.*"):
		g.global = append(g.global, rights...)
	case verb == "GRANT" && ofSchema:
		g.schemas = append(g.schemas, schemaGrant{pattern, rights})
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

// everywhere is a right on all schemas but those where it is revoked.
func (g *Rights) everywhere(right string) (has bool, but []string) {
	for _, r := range g.revoked {
		if slices.Contains(r.rights, right) {
			but = append(but, r.pattern)
		}
	}
	return slices.Contains(g.global, right) || slices.Contains(g.global, "ALL PRIVILEGES"), but
}

// Everywhere reports whether the account has a right on all schemas, or on the server.
func (g *Rights) Everywhere(right string) bool {
	has, but := g.everywhere(right)
	return has && but == nil
}

// On reports whether the account has a right on all of a schema, be there such a schema or not.
func (g *Rights) On(schema, right string) bool {
	if has, but := g.everywhere(right); has && !slices.Contains(but, schema) {
		return true
	}
	grant := g.of(schema)
	return grant != nil && (slices.Contains(grant.rights, right) || slices.Contains(grant.rights, "ALL PRIVILEGES"))
}

// of returns the grant that counts for a schema; nil: there is none.
func (g *Rights) of(schema string) (found *schemaGrant) {
	for i := range g.schemas {
		s := &g.schemas[i]
		if matches(s.pattern, schema, g.fold) && (found == nil || certain(s.pattern) > certain(found.pattern)) {
			found = s
		}
	}
	return found
}

// Granted writes a schema as GRANT has it: in the form of the grant that counts now, where there is one.
// A grant of another form would take its place, and the rights that it has be lost.
func (g *Rights) Granted(schema string) string {
	if found := g.of(schema); found != nil {
		return "`" + strings.ReplaceAll(found.pattern, "`", "``") + "`"
	}
	return Granted(schema)
}

// Granted writes a schema as GRANT has it, where _ and % are wildcards.
func Granted(schema string) string {
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
