package upstream

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"idproxy/pattern"
)

// Rights are what an account may do on a server, with the roles that it has from its login on.
type Rights struct {
	Facts
	global  []string
	revoked []schemaGrant // of the global ones, by MySQL's partial_revokes
	schemas []schemaGrant
}

// Facts are what a server says of itself and of who asks.
type Facts struct {
	Account string // 'user'@'host'
	Version string
	MariaDB bool // of two patterns of grants it takes the one that SHOW GRANTS has first
	Strict  bool // sql_mode
	Fold    bool // names of schemas and tables are the same in capitals
	Literal bool // a pattern of a grant is a name: MySQL's partial_revokes
}

// Same compares names of schemas and tables as the server does.
func (f *Facts) Same(one, other string) bool {
	return one == other || f.Fold && pattern.Fold(one) == pattern.Fold(other)
}

// schemaGrant is what an account, or a role of its, has on the schemas of a pattern. Of those that match a
// schema the server takes one of each, the most specific, and no right of another:
// https://dev.mysql.com/doc/refman/8.4/en/grant-tables.html.
type schemaGrant struct {
	to      string // the account, or the role
	pattern string // as GRANT has it, without quotes
	rights  []string
}

func (g *schemaGrant) has(right string) bool {
	return slices.Contains(g.rights, right) || slices.Contains(g.rights, "ALL PRIVILEGES")
}

// Rights asks what the account may do. Where the server says all but that, there is an error beside what it said.
func (u *Server) Rights(ctx context.Context) (*Rights, error) {
	var f Facts
	var as, modes string
	const query = "SELECT CURRENT_USER(), VERSION(), @@GLOBAL.sql_mode, @@lower_case_table_names <> 0"
	if err := u.DB.QueryRowContext(ctx, query).Scan(&as, &f.Version, &modes, &f.Fold); err != nil {
		return nil, err
	}
	user, host := as, "%"
	if at := strings.LastIndexByte(as, '@'); at >= 0 {
		user, host = as[:at], as[at+1:]
	}
	f.Account = quoteText(user) + "@" + quoteText(host)
	f.MariaDB, f.Strict = strings.Contains(f.Version, "MariaDB"), strings.Contains(modes, "STRICT_")
	err := u.Each(ctx, "SHOW VARIABLES LIKE 'partial_revokes'", func(row []string) { f.Literal = row[1] == "ON" })
	if err != nil {
		return &Rights{Facts: f}, err
	}
	var rows []string
	err = u.Each(ctx, "SHOW GRANTS", func(row []string) { rows = append(rows, row[0]) })
	return ReadRights(f, rows...), err
}

// ReadRights reads the rows of SHOW GRANTS.
func ReadRights(f Facts, rows ...string) *Rights {
	g := &Rights{Facts: f}
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
	pattern, to, ofSchema := onSchema(on)
	switch {
	case verb == "REVOKE" && ofSchema:
		g.revoked = append(g.revoked, schemaGrant{to, pattern, rights})
	case verb == "GRANT" && strings.HasPrefix(on, "*.*"):
		g.global = append(g.global, rights...)
	case verb == "GRANT" && ofSchema:
		if strings.Contains(to, "@") {
			to = "" // the account; a role of MariaDB's has no host, and MySQL shows what comes by roles as the account's own
		}
		g.schemas = append(g.schemas, schemaGrant{to, pattern, rights})
	}
}

// onSchema reads what stands behind ON, where that is a whole schema, and whose it is.
func onSchema(on string) (pattern, to string, ok bool) {
	if on == "" || on[0] != '`' && on[0] != '"' {
		pattern, to, ok = strings.Cut(on, ".* ")
		return pattern, grantee(to), ok && pattern != "*" && !strings.Contains(pattern, " ")
	}
	quote := on[:1]
	for at := 1; at < len(on); at++ {
		switch {
		case on[at] != quote[0]:
		case at+1 < len(on) && on[at+1] == quote[0]:
			at++
		default:
			to, ok = strings.CutPrefix(on[at+1:], ".* ")
			return strings.ReplaceAll(on[1:at], quote+quote, quote), grantee(to), ok
		}
	}
	return "", "", false
}

// grantee is the name behind TO or FROM.
func grantee(text string) string {
	_, name, _ := strings.Cut(text, " ")
	name, _, _ = strings.Cut(name, " ")
	return name
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
	has, but := g.everywhere(right)
	if has && !slices.ContainsFunc(but, func(name string) bool { return g.Same(name, schema) }) {
		return true
	}
	for _, grants := range g.of(schema) {
		lacks := func(s *schemaGrant) bool { return !s.has(right) }
		if !slices.ContainsFunc(grants, lacks) {
			return true
		}
	}
	return false
}

// Sees reports whether the account sees all tables that a pattern matches, be there such ones or not.
func (g *Rights) Sees(t pattern.Table) bool {
	if t.Name = "-"; t.Exact() { // the schema is
		return g.On(t.Schema, "SELECT")
	}
	return g.Everywhere("SELECT")
}

// of returns the grants of which one counts for a schema, by whom they are given to. Where they are
// several, SHOW GRANTS does not tell which.
func (g *Rights) of(schema string) map[string][]*schemaGrant {
	found := map[string][]*schemaGrant{}
	for i := range g.schemas {
		s := &g.schemas[i]
		known := found[s.to]
		switch {
		case !g.matches(s.pattern, schema), known != nil && (g.MariaDB || certain(s.pattern) < certain(known[0].pattern)):
		case known != nil && certain(s.pattern) == certain(known[0].pattern):
			found[s.to] = append(known, s)
		default:
			found[s.to] = []*schemaGrant{s}
		}
	}
	return found
}

// Grant is the statement that gives the account rights on a schema.
func (g *Rights) Grant(rights, schema string) string {
	return fmt.Sprintf("GRANT %s ON %s.* TO %s;", rights, g.Granted(schema), g.Account)
}

// GrantEverywhere is the statement that gives it rights on the server.
func (g *Rights) GrantEverywhere(rights string) string {
	return fmt.Sprintf("GRANT %s ON *.* TO %s;", rights, g.Account)
}

// Granted writes a schema as GRANT has it: in the form of the grant that counts now, where there is one.
// A grant of another form would take its place, and the rights that it has be lost.
func (g *Rights) Granted(schema string) string {
	if own := g.of(schema)[""]; own != nil {
		return "`" + strings.ReplaceAll(own[0].pattern, "`", "``") + "`"
	}
	return g.Whole(schema)
}

// Whole writes a schema as GRANT has it, for that schema alone.
func (g *Rights) Whole(schema string) string {
	schema = strings.ReplaceAll(schema, "`", "``")
	if !g.Literal {
		schema = strings.NewReplacer("_", `\_`, "%", `\%`).Replace(schema)
	}
	return "`" + schema + "`"
}

// certain is how many characters of a pattern stand in front of its first wildcard: by that MySQL says
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
func (g *Rights) matches(of, schema string) bool {
	if g.Literal {
		return g.Same(of, schema)
	}
	if g.Fold {
		of, schema = pattern.Fold(of), pattern.Fold(schema)
	}
	return like([]rune(of), []rune(schema))
}

// like matches as LIKE does. It goes back to the last % alone, as the one before cannot do better.
func like(of, text []rune) bool {
	p, n, last, again := 0, 0, -1, 0 // last is the last %, again the place in text that it has to swallow next
	for n < len(text) {
		switch {
		case p < len(of) && of[p] == '%':
			last, again = p, n
			p++
		case p+1 < len(of) && of[p] == '\\' && of[p+1] == text[n]:
			p, n = p+2, n+1
		case p < len(of) && (of[p] == '_' || of[p] == text[n] && (of[p] != '\\' || p+1 == len(of))):
			p, n = p+1, n+1
		case last < 0:
			return false
		default:
			again++
			p, n = last+1, again
		}
	}
	for p < len(of) && of[p] == '%' {
		p++
	}
	return p == len(of)
}

// quoteText writes a text as SQL does.
func quoteText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(s) + "'"
}
