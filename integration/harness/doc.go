// Package harness gives tests what they all need: the shared database servers and the real idproxy
// program.
//
//	func TestMain(m *testing.M) { harness.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		server := harness.MariaDB(t)                 // or harness.MySQL(t), or harness.Servers(t) for both
//		db := harness.Database(t, server)            // a new, empty database, dropped at the end
//		proxy := harness.StartProxy(t, fmt.Sprintf(`
//	listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
//	sources:   {ids: {segment: {}}}
//	rules:     [{table: %s.orders, column: id, source: ids}]
//	`, server.Addr, db))
//		conn := harness.Open(t, server.Config(db), proxy.Addr("a"))
//		...
//	}
//
// One server of each kind is started at its first use and shared by all tests of a test program;
// Main stops them. So is a MariaDB 11.8 for tests that ask for NewerMariaDB. A test that kills its
// server or needs other settings starts one of its own with StartServer.
//
// StartProxy runs cmd/idproxy in a folder of its own (so that `segment: {}` keeps its file there),
// waits for one listening line per listener, and at the end of the test stops it with SIGTERM and
// fails the test when it does not exit with status 0 or when its log shows a data race or a panic.
// The log is shown when the test failed. Start with a Spec is the same with a choice: Plain leaves
// the race detector out also where the run has it, for measurements and big statements; MayFail
// does without the checks, for a proxy the test kills itself.
//
// Tests may run in parallel and share servers; none may change a global setting of a shared one.
package harness
