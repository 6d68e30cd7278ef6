package decide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
)

// What an INSERT costs between its arrival and its departure, without the network.
func BenchmarkInjected(b *testing.B) {
	for _, rows := range []int{1, 100, 1000} {
		var sb strings.Builder
		sb.WriteString("INSERT INTO orders (a, b) VALUES ")
		for i := range rows {
			if i > 0 {
				sb.WriteByte(',')
			}
			fmt.Fprintf(&sb, "(%d,'%s')", i, strings.Repeat("x", 150))
		}
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			x := newDeciding()
			command := wire.AppendPacket(nil, 0, append([]byte{mysql.COM_QUERY}, sb.String()...))
			m := relay.Requests{Conversation: x.c, Rules: x.d.Rules, Limit: 1 << 20}
			b.SetBytes(int64(len(command)))
			for b.Loop() {
				n, _ := m.Next(command)
				x.st.Read(command[:n], m.Arrival(command[:n]))
				if n, err := x.decide(); err != nil || n != nil || len(x.st.Filled.Parts) != 1 {
					b.Fatal(n, err)
				}
				p, plan := &x.st.Filled.Parts[0], &x.st.Filled.plans[0]
				for len(p.ids) < len(p.Rules) {
					p.ids = append(p.ids, make([]uint64, plan.Rows))
				}
				p.ids[0] = p.ids[0][:plan.Columns[0].Generated]
				x.st.reply = &relay.InsertReply{Inserts: []relay.Expect{p.expect(plan, false)}}
				sqlText{&x.st.Filled}.rewrite(&x.st.Command)
			}
		})
	}
}
