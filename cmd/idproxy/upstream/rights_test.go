package upstream

import "testing"

// TestRights: of the grants of an account the most specific counts for a schema, and no right of
// another one. What is printed has its form.
func TestRights(t *testing.T) {
	for _, tt := range []struct {
		name    string
		rows    []string
		schema  string
		sees    bool
		granted string
	}{
		{"nothing", []string{"GRANT USAGE ON *.* TO `a`@`%`"}, "shop_1", false, "`shop\\_1`"},
		{"a quote", nil, "a`b%", false, "`a``b\\%`"},
		{"everything", []string{"GRANT SELECT, INSERT ON *.* TO `a`@`%`"}, "shop", true, "`shop`"},
		{"all of it", []string{"GRANT ALL PRIVILEGES ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*6' WITH GRANT OPTION"}, "shop", true, "`shop`"},
		{"all but one", []string{"GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `sh_p`.* FROM `a`@`%`"}, "sh_p", false, "`sh\\_p`"},
		{"another of all but one", []string{"GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `sh_p`.* FROM `a`@`%`"}, "shop", true, "`shop`"},
		{"as it is mostly written", []string{"GRANT SELECT ON `sh_p`.* TO `a`@`%`"}, "sh_p", true, "`sh_p`"},
		{"with a backslash", []string{"GRANT SELECT ON `sh\\_p`.* TO `a`@`%`"}, "sh_p", true, "`sh\\_p`"},
		{"of another, with a backslash", []string{"GRANT SELECT ON `sh\\_p`.* TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of many", []string{"GRANT ALL PRIVILEGES ON `sh%p`.* TO `a`@`%`"}, "shoop", true, "`sh%p`"},
		{"the most specific selects not", []string{"GRANT SELECT ON `sh%`.* TO `a`@`%`", "GRANT INSERT ON `shop`.* TO `a`@`%`"}, "shop", false, "`shop`"},
		{"the most specific selects", []string{"GRANT INSERT ON `%`.* TO `a`@`%`", "GRANT SELECT ON `sho_`.* TO `a`@`%`"}, "shop", true, "`sho_`"},
		{"quoted otherwise", []string{`GRANT SELECT ON "a""b".* TO "a"@"%"`}, `a"b`, true, "`a\"b`"},
		{"not quoted", []string{"GRANT SELECT ON shop.* TO a@%"}, "shop", true, "`shop`"},
		{"of a table", []string{"GRANT SELECT ON `shop`.`t` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of columns", []string{"GRANT SELECT (`a`, `b`) ON `shop`.`t` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of a routine", []string{"GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"a role, a proxy and half a row", []string{"GRANT `r`@`%` TO `a`@`%`", "GRANT PROXY ON ''@'' TO 'a'@'%'", "GRANT SELECT ON `sho", "GRANT", ""}, "shop", false, "`shop`"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := ReadRights("", false, tt.rows...)
			if g.On(tt.schema, "SELECT") != tt.sees || g.Granted(tt.schema) != tt.granted {
				t.Errorf("sees %v, granted %s; want %v, %s: %+v", g.On(tt.schema, "SELECT"), g.Granted(tt.schema), tt.sees, tt.granted, g)
			}
		})
	}
}
