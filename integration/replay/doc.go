// Package replay is a client for tests that keeps every byte. It replays sessions directly and
// through a proxy, and says where what the server sent differs. What differs by nature, such as a
// thread number, is masked.
//
// Its methods panic where a session cannot go on; Do returns that as an error.
package replay
