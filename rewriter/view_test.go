package rewriter

import (
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

const viewHead = "CREATE ALGORITHM=UNDEFINED DEFINER=`app`@`%` SQL SECURITY DEFINER VIEW "

// views are as MariaDB 10.11 and MySQL 9.7 write them down.
var views = []struct{ text, column, want string }{
	{viewHead + "`v1` AS select `t`.`id` AS `id`,`t`.`n` AS `n` from `t`", "ID", ".t.id"},
	{viewHead + "`d`.`v1` AS select `d`.`t`.`id` AS `id`,`d`.`t`.`we``ird, x` AS `we``ird, x` from `d`.`t`", "we`ird, x", "d.t.we`ird, x"},
	{`CREATE ALGORITHM=UNDEFINED DEFINER="app"@"%" SQL SECURITY DEFINER VIEW "d"."v1" AS select "d"."t"."id" AS "k" from "d"."t"`, "k", "d.t.id"},
	{`CREATE ALGORITHM=UNDEFINED DEFINER=app@"%" SQL SECURITY DEFINER VIEW d.v1 AS select d.t."id" AS id,d.t.n AS n from d.t where d.t.n = 1`, "id", "d.t.id"},
	{viewHead + "`v2` AS select `q`.`id` AS `a`,`q`.`n` AS `b` from `t` `q` where `q`.`n` > 0 or `q`.`n` in (1,2) WITH CASCADED CHECK OPTION", "a", ".t.id"},
	{viewHead + "`v2` (`a`,`b`) AS select `q`.`id` AS `id`,`q`.`n` AS `n` from `t` `q` where ((`q`.`n` > 0))", "a", ".t.id"},
	{viewHead + "`v2` (`a`,`b`) AS select `q`.`id` AS `id`,`q`.`n` AS `n` from `t` `q`", "id", ""},
	{viewHead + "`v3` AS select `t`.`n` + 1 AS `e`,'it, from x' AS `l`,(select max(`u`.`uid`) from `u`) AS `m`,`t`.`id` AS `i2` from `t`", "i2", ".t.id"},
	{viewHead + "`v3` AS select `t`.`n` + 1 AS `e`,`t`.`id` AS `id` from `t`", "e", ""},
	{viewHead + "`v3` AS select (`t`.`n` + 1) AS `e` from `t`", "e", ""},
	{viewHead + "`v3` AS select `t`.`id` + 1 AS `e` from `t`", "e", ""},
	{viewHead + "`v13` AS select case `t`.`n` when 1 then 2 end AS `c`,`t`.`id` AS `id` from `t`", "id", ".t.id"},
	{viewHead + "`v13` AS select cast(`t`.`n` as char charset utf8mb4) AS `c`,`t`.`id` AS `from` from `t`", "from", ".t.id"},
	{viewHead + "`v8` AS select `t`.`id` AS `id` from `t` USE INDEX (PRIMARY) where `t`.`n` = 1", "id", ".t.id"},
	{viewHead + "`v10` AS (select `t`.`id` AS `id` from `t`)", "id", ".t.id"},
	{viewHead + "`v5` AS select `t`.`id` AS `id` from (`t` join `u` on(`u`.`tid` = `t`.`id`))", "id", ""},
	{viewHead + "`v6` AS select `t`.`id` AS `id` from `t` join `u`", "id", ""},
	{viewHead + "`v6` AS select `x`.`id` AS `id` from `t` `x`,`u`", "id", ""},
	{viewHead + "`v9` AS select distinct `t`.`id` AS `id` from `t`", "id", ""},
	{viewHead + "`v11` AS with c as (select 1 AS `1`)select `t`.`id` AS `id` from `t`", "id", ""},
	{viewHead + "`v3` AS select 'it\\'s' AS `l`,`t`.`id` AS `id` from `t`", "id", ""},
	{"CREATE TABLE `t` (`id` int)", "id", ""},
}

func TestReadView(t *testing.T) {
	for _, tt := range views {
		got := ""
		if v, ok := ReadView([]byte(tt.text)); ok {
			if base := v.Base(tt.column); base != nil {
				got = string(v.Table.Schema) + "." + string(v.Table.Table) + "." + string(base)
			}
		}
		assert.True(t, got == tt.want, "%s of %s is %q, want %q", tt.column, strings.TrimPrefix(tt.text, viewHead), got, tt.want)
	}
}

// FuzzReadView: what is read of any bytes are names that stand in them.
func FuzzReadView(f *testing.F) {
	for _, tt := range views {
		f.Add([]byte(tt.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, ok := ReadView(text)
		if !ok {
			return
		}
		in := func(name []byte) bool {
			return strings.Contains(string(text), string(name)) || strings.Contains(string(text), strings.ReplaceAll(string(name), "`", "``")) ||
				strings.Contains(string(text), strings.ReplaceAll(string(name), `"`, `""`))
		}
		if len(v.Table.Table) == 0 && !strings.Contains(string(text), "``") && !strings.Contains(string(text), `""`) || !in(v.Table.Table) || !in(v.Table.Schema) {
			t.Fatalf("table %q of %q", v.Table, text)
		}
		for _, c := range v.columns {
			assert.MustTrue(t, c.name != nil && in(c.base), "column %q of %q", c, text)
		}
	})
}

// FuzzMayName: no way to write an INSERT hides the table that its head names.
func FuzzMayName(f *testing.F) {
	f.Add("orders", "INSERT INTO ORDERS VALUES (1)", uint8(0))
	f.Add("or`d*", "INSERT INTO `or``ders` VALUES (1)", uint8(1))
	f.Add("\u65e5?", "REPLACE \u65e5\u672c SET a=1", uint8(2))
	f.Fuzz(func(t *testing.T, pattern, text string, how uint8) {
		mode := Mode{ANSIQuotes: how&1 != 0, NoBackslashEscapes: how&2 != 0, MariaDB: how&4 != 0, Charset: Charset(how >> 3 % 5)}
		head, _ := ReadHead([]byte(text), mode)
		rules := rule.NewList([]rule.Rule{{Schema: "*", Table: pattern, Column: "id"}})
		for _, fold := range []bool{false, true} {
			assert.True(t, rules.Match(nil, head.Target.Table, fold) == nil || len(head.Target.Table) <= 0 || rules.MayName([]byte(text)),
				"%q names %q, which %q matches", text, head.Target.Table, pattern)
		}
	})
}
