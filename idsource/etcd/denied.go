package etcd

import (
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// denials are what a cluster says of a user that it turns away.
var denials = []error{
	rpctypes.ErrAuthFailed, rpctypes.ErrPermissionDenied, rpctypes.ErrInvalidAuthToken, rpctypes.ErrUserEmpty, rpctypes.ErrUserNotFound,
}

// Denied reports whether the cluster answered, and turned the user away.
func Denied(err error) bool {
	if slices.ContainsFunc(denials, func(denial error) bool { return errors.Is(err, denial) }) {
		return true
	}
	code := status.Code(err)
	return code == codes.PermissionDenied || code == codes.Unauthenticated
}
