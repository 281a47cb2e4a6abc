import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The first versions that read AWS_ENDPOINT_URL, by the CHANGELOG of each major version of the CLI. */
const READS_ENDPOINT: Readonly<Record<string, number>> = { 1: 29, 2: 13 }

const WRAPPER = `#!/bin/sh
PATH=\${PATH#*:} exec aws \${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"} "$@"
`

/** A PATH whose `aws` reads AWS_ENDPOINT_URL: one that is too old for that, as in Debian 12, gets a flag from a script in this directory. */
export function pathWithAws(path: string, directory: string): string {
  const [, major = '', minor] =
    /^aws-cli\/(\d+)\.(\d+)/.exec(execFileSync('aws', ['--version']).toString()) ?? []
  if (Number(minor) >= (READS_ENDPOINT[major] ?? 0)) return path
  writeFileSync(join(directory, 'aws'), WRAPPER, { mode: 0o755 })
  return `${directory}:${path}`
}
