package upstream

import (
	"strings"
	"testing"
)

// TestRights: of the grants of an account the most specific counts for a schema, and no right of
// another one. What is printed has its form.
func TestRights(t *testing.T) {
	maria, literal := Names{MariaDB: true}, Names{Literal: true}
	for _, tt := range []struct {
		name    string
		names   Names
		rows    []string
		schema  string
		sees    bool
		granted string
	}{
		{"nothing", Names{}, []string{"GRANT USAGE ON *.* TO `a`@`%`"}, "shop_1", false, "`shop\\_1`"},
		{"a quote", Names{}, nil, "a`b%", false, "`a``b\\%`"},
		{"everything", Names{}, []string{"GRANT SELECT, INSERT ON *.* TO `a`@`%`"}, "shop", true, "`shop`"},
		{"all of it", Names{}, []string{"GRANT ALL PRIVILEGES ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*6' WITH GRANT OPTION"}, "shop", true, "`shop`"},
		{"all but one", Names{}, []string{"GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `sh_p`.* FROM `a`@`%`"}, "sh_p", false, "`sh\\_p`"},
		{"another of all but one", Names{}, []string{"GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `sh_p`.* FROM `a`@`%`"}, "shop", true, "`shop`"},
		{"as it is mostly written", Names{}, []string{"GRANT SELECT ON `sh_p`.* TO `a`@`%`"}, "sh_p", true, "`sh_p`"},
		{"with a backslash", Names{}, []string{"GRANT SELECT ON `sh\\_p`.* TO `a`@`%`"}, "sh_p", true, "`sh\\_p`"},
		{"of another, with a backslash", Names{}, []string{"GRANT SELECT ON `sh\\_p`.* TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of many", Names{}, []string{"GRANT ALL PRIVILEGES ON `sh%p`.* TO `a`@`%`"}, "shoop", true, "`sh%p`"},
		{"the most specific selects not", Names{}, []string{"GRANT SELECT ON `sh%`.* TO `a`@`%`", "GRANT INSERT ON `shop`.* TO `a`@`%`"}, "shop", false, "`shop`"},
		{"the most specific selects", Names{}, []string{"GRANT INSERT ON `%`.* TO `a`@`%`", "GRANT SELECT ON `sho_`.* TO `a`@`%`"}, "shop", true, "`sho_`"},
		{"one of two that begin alike", Names{}, []string{"GRANT SELECT ON `s%1`.* TO `a`@`%`", "GRANT INSERT ON `s_1`.* TO `a`@`%`"}, "shh1", true, "`s%1`"},
		{"which of two counts is not said", Names{}, []string{"GRANT SELECT ON `s%1`.* TO `a`@`%`", "GRANT INSERT ON `s_1`.* TO `a`@`%`"}, "sx1", false, "`s%1`"},
		{"the first of MariaDB's", maria, []string{"GRANT INSERT ON `s_1`.* TO `a`@`%`", "GRANT SELECT ON `s\\_%`.* TO `a`@`%`"}, "s_1", false, "`s_1`"},
		{"a role of MariaDB's", maria, []string{"GRANT INSERT ON `s_1`.* TO `a`@`%`", "GRANT SELECT ON `s\\_1`.* TO `r`"}, "s_1", true, "`s_1`"},
		{"everybody's of MariaDB", maria, []string{"GRANT INSERT ON `s_1`.* TO `a`@`%`", "GRANT SELECT ON `s\\_1`.* TO PUBLIC"}, "s_1", true, "`s_1`"},
		{"no wildcard", literal, []string{"GRANT SELECT ON `s%`.* TO `a`@`%`"}, "s_1", false, "`s_1`"},
		{"no backslash", literal, []string{"GRANT SELECT ON `s\\_1`.* TO `a`@`%`"}, "s_1", false, "`s_1`"},
		{"the name", literal, []string{"GRANT SELECT ON `s_1`.* TO `a`@`%`"}, "s_1", true, "`s_1`"},
		{"all but one in capitals", Names{Fold: true}, []string{"GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `shop`.* FROM `a`@`%`"}, "Shop", false, "`Shop`"},
		{"many wildcards", Names{}, []string{"GRANT SELECT ON `%a%a%a%a%a%a%a%a%a%b`.* TO `a`@`%`"}, strings.Repeat("a", 60), false, "`" + strings.Repeat("a", 60) + "`"},
		{"quoted otherwise", Names{}, []string{`GRANT SELECT ON "a""b".* TO "a"@"%"`}, `a"b`, true, "`a\"b`"},
		{"not quoted", Names{}, []string{"GRANT SELECT ON shop.* TO a@%"}, "shop", true, "`shop`"},
		{"of a table", Names{}, []string{"GRANT SELECT ON `shop`.`t` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of columns", Names{}, []string{"GRANT SELECT (`a`, `b`) ON `shop`.`t` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of a routine", Names{}, []string{"GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"a role, a proxy and half a row", Names{}, []string{"GRANT `r`@`%` TO `a`@`%`", "GRANT PROXY ON ''@'' TO 'a'@'%'", "GRANT SELECT ON `sho", "GRANT", ""}, "shop", false, "`shop`"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := ReadRights("", tt.names, tt.rows...)
			if g.On(tt.schema, "SELECT") != tt.sees || g.Granted(tt.schema) != tt.granted {
				t.Errorf("sees %v, granted %s; want %v, %s: %+v", g.On(tt.schema, "SELECT"), g.Granted(tt.schema), tt.sees, tt.granted, g)
			}
		})
	}
}
