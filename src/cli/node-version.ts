const NEEDED = 24

/** Whether Node is new enough. If not, says what to do, and the exit code is 1. */
export function checkNode(): boolean {
  if (Number(process.versions.node.split('.')[0]) >= NEEDED) return true
  process.stderr.write(
    `mayfly needs Node.js ${NEEDED} or later; this is ${process.versions.node}. Do one of these:\n` +
      '  install the package of Mayfly, which needs no Node.js: docs/operations/install.md\n' +
      `  let npm bring Node.js ${NEEDED}: npx -p node@${NEEDED} mayfly …\n`,
  )
  process.exitCode = 1
  return false
}
