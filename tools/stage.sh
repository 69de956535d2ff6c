# For tools/test and tools/quickstart: runs commands quietly, and prints one line for each with the
# seconds that it took.
#   stage NAME COMMAND...   runs it
#   begin NAME COMMAND...   has it run in the background, with low priority, after what was begun before
#   finish NAME             waits for what was begun
# If one fails: the end of its log, then stage_failed, then the script ends, and with it what was
# begun.
logs=build/logs
mkdir -p "$logs"
declare -A begun_as
begun_last=

stage() {
  local name=$1 start=$SECONDS
  shift
  printf '%-15s ' "$name"
  if "$@" >"$logs/$name.log" 2>&1; then
    printf 'ok %5d s\n' $((SECONDS - start))
    return
  fi
  fail_stage "$name" $((SECONDS - start))
}

begin() {
  local name=$1
  shift
  trap end_begun EXIT
  rm -f "$logs/$name.seconds"
  set -m # a process group of its own
  (
    renice -n 10 -p "$BASHPID" >/dev/null
    # Whoever finishes what is waited for here ends this too if it failed without a word.
    until [ -z "$begun_last" ] || [ -e "$logs/$begun_last.seconds" ]; do sleep 0.5; done
    start=$SECONDS
    status=0
    "$@" || status=$?
    echo $((SECONDS - start)) >"$logs/$name.seconds"
    exit "$status"
  ) >"$logs/$name.log" 2>&1 </dev/null &
  set +m
  begun_as[$name]=$!
  begun_last=$name
}

finish() {
  local name=$1 status=0 seconds=0
  printf '%-15s ' "$name"
  wait "${begun_as[$name]}" || status=$?
  unset "begun_as[$name]"
  [ ! -s "$logs/$name.seconds" ] || seconds=$(cat "$logs/$name.seconds")
  [ "$status" -eq 0 ] || fail_stage "$name" "$seconds"
  printf 'ok %5d s\n' "$seconds"
}

fail_stage() {
  printf 'FAILED %d s, the end of %s/%s.log:\n' "$2" "$logs" "$1"
  grep -vE '^ +Start +[0-9]+:| Passed +[0-9.]+ sec$' "$logs/$1.log" | tail -n 120 || true
  stage_failed
  exit 1
}

end_begun() {
  local group
  for group in "${begun_as[@]}"; do
    kill -- "-$group" 2>/dev/null || true
  done
}
