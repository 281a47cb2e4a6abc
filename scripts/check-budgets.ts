import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** 300 lines a file (CONTRIBUTING.md). Functions are bounded by the linter. */
const MOST_LINES = 300

const files = execFileSync(
  'git',
  ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.mjs'],
  { encoding: 'utf8' },
)
const over = files
  .split('\n')
  .filter((file) => file !== '')
  .map((file) => ({ file, lines: readFileSync(file, 'utf8').split('\n').length - 1 }))
  .filter(({ lines }) => lines > MOST_LINES)

for (const { file, lines } of over)
  console.error(`${file}: ${lines} lines, ${MOST_LINES} at most; it is two things`)
process.exit(over.length > 0 ? 1 : 0)
