# For tools/test and tools/quickstart: stage NAME COMMAND... runs a command quietly and prints one
# line with the seconds it took. If it fails: the end of its log, then stage_failed, then out.
logs=build/logs
mkdir -p "$logs"

stage() {
  local name=$1 start=$SECONDS
  shift
  printf '%-15s ' "$name"
  if "$@" >"$logs/$name.log" 2>&1; then
    printf 'ok %5d s\n' $((SECONDS - start))
    return
  fi
  printf 'FAILED %d s, the end of %s/%s.log:\n' $((SECONDS - start)) "$logs" "$name"
  grep -vE '^ +Start +[0-9]+:| Passed +[0-9.]+ sec$' "$logs/$name.log" | tail -n 120
  stage_failed
  exit 1
}
