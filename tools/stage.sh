# For tools/test and tools/quickstart: runs commands quietly, and prints one line for each with the
# seconds that it took.
#   stage NAME COMMAND...   runs it; its output goes to build/logs/NAME.log. If it fails, the end of
#                           the log is shown. The command's status is the stage's.
# failed_stages has the names of stages that failed, stage_results "NAME ok|FAILED SECONDS" of each.
logs=build/logs
mkdir -p "$logs"
failed_stages=()
stage_results=()

stage() {
  local name=$1 start=$SECONDS status=0
  shift
  printf '%-15s ' "$name"
  "$@" >"$logs/$name.log" 2>&1 || status=$?
  if [ "$status" -eq 0 ]; then
    stage_results+=("$name ok $((SECONDS - start))")
    printf 'ok %5d s\n' $((SECONDS - start))
    return
  fi
  failed_stages+=("$name")
  stage_results+=("$name FAILED $((SECONDS - start))")
  printf 'FAILED %d s, the end of %s/%s.log:\n' $((SECONDS - start)) "$logs" "$name"
  tail -n 150 "$logs/$name.log"
  return "$status"
}
