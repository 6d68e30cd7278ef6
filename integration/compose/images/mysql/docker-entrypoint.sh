#!/bin/bash
# What the entrypoint of the official image does with a data folder that is empty, as its documentation has it: the passwords
# from variables or from files that they name with _FILE, the database and its user, and the files of
# /docker-entrypoint-initdb.d while the server listens on its socket only. Then it becomes the server.
set -eo pipefail

log() { echo "$(date -u +%FT%TZ) [Note] [Entrypoint]: $*"; }
die() { log "$*" >&2; exit 1; }

# file_env NAME reads the variable NAME from the file that NAME_FILE names.
file_env() {
  local file=$1_FILE
  [ -z "${!1-}" ] || [ -z "${!file-}" ] || die "both $1 and $file are set"
  [ -z "${!file-}" ] || export "$1=$(<"${!file}")"
  unset "$file"
}

# docker_process_sql is for files of /docker-entrypoint-initdb.d, too.
docker_process_sql() {
  [ -z "$MYSQL_DATABASE" ] || set -- --database="$MYSQL_DATABASE" "$@"
  MYSQL_PWD=$MYSQL_ROOT_PASSWORD mysql --protocol=socket -uroot -hlocalhost --comments "$@"
}

set_up() {
  local file
  for file in MYSQL_ROOT_PASSWORD MYSQL_ROOT_HOST MYSQL_DATABASE MYSQL_USER MYSQL_PASSWORD; do file_env "$file"; done
  [ -n "$MYSQL_ROOT_PASSWORD" ] || die "the password is missing: set MYSQL_ROOT_PASSWORD or MYSQL_ROOT_PASSWORD_FILE"
  log "Initializing database files"
  mysqld --initialize-insecure --default-time-zone=SYSTEM
  log "Starting temporary server"
  mysqld --daemonize --skip-networking --default-time-zone=SYSTEM
  mysql --protocol=socket -uroot mysql <<END
ALTER USER 'root'@'localhost' IDENTIFIED BY '$MYSQL_ROOT_PASSWORD';
CREATE USER 'root'@'${MYSQL_ROOT_HOST:-%}' IDENTIFIED BY '$MYSQL_ROOT_PASSWORD';
GRANT ALL ON *.* TO 'root'@'${MYSQL_ROOT_HOST:-%}' WITH GRANT OPTION;
END
  if [ -n "$MYSQL_DATABASE" ]; then
    MYSQL_DATABASE= docker_process_sql --database=mysql <<<"CREATE DATABASE IF NOT EXISTS \`$MYSQL_DATABASE\`"
  fi
  if [ -n "$MYSQL_USER" ]; then
    docker_process_sql --database=mysql <<<"CREATE USER '$MYSQL_USER'@'%' IDENTIFIED BY '$MYSQL_PASSWORD'"
    [ -z "$MYSQL_DATABASE" ] || docker_process_sql --database=mysql <<<"GRANT ALL ON \`${MYSQL_DATABASE//_/\\_}\`.* TO '$MYSQL_USER'@'%'"
  fi
  for file in /docker-entrypoint-initdb.d/*; do
    case $file in
    *.sh)
      log "running $file"
      # shellcheck disable=SC1090 # the user's own
      if [ -x "$file" ]; then "$file"; else . "$file"; fi
      ;;
    *.sql)
      log "running $file"
      docker_process_sql <"$file"
      ;;
    *) log "ignoring $file" ;;
    esac
  done
  log "Stopping temporary server"
  MYSQL_PWD=$MYSQL_ROOT_PASSWORD mysqladmin --protocol=socket -uroot shutdown
  log "MySQL init process done. Ready for start up."
}

if [ "$1" = mysqld ]; then
  if [ "$EUID" = 0 ]; then
    chown mysql:mysql /var/lib/mysql /var/run/mysqld
    log "Switching to dedicated user 'mysql'"
    exec setpriv --reuid mysql --regid mysql --clear-groups "${BASH_SOURCE[0]}" "$@"
  fi
  [ -d /var/lib/mysql/mysql ] || set_up
fi
exec "$@"
