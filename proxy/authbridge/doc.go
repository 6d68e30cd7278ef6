// Package authbridge takes logins across a session whose two connections are not equally secure. Some
// plugins send the password itself: in clear over a connection that nobody can read, else encrypted
// with a key of the server. Where the client sees one kind of connection and the server the other,
// the password is read here, and sent on in the form that the server expects. It is kept nowhere.
package authbridge
