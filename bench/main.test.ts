import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { readSpeed } from './openssl.ts'

const run = promisify(execFile)
const MAIN = join(import.meta.dirname, 'main.ts')

it('measures the server and the baseline, and leaves only its result behind', async () => {
  const args = [MAIN, '--quick', '--source', '--only', 'status', '--clients', '4']
  const running = run(process.execPath, args, { timeout: 60_000 })
  const { stdout, stderr } = await running
  const [head, rule, row, end] = stdout.split('\n')
  expect(head).toMatch(/^\| Scenario \| Clients \| Per second \|.*\| Ratio \|.*\| Goal \| Met \|$/)
  expect(rule).toMatch(/^\|( --- \|)+$/)
  expect(row).toMatch(/^\| GET \/v1\/status \| 4 \| [1-9]\d* \|/)
  expect(end).toBe('')
  const file = /written to (\S+\.json)/.exec(stderr)?.[1] ?? ''
  const result = JSON.parse(readFileSync(file, 'utf8'))
  expect(result).toMatchObject({ failed: [], rows: [{ scenario: 'GET /v1/status', clients: 4 }] })
  expect(result.rows[0].ratio).toBeGreaterThan(0)
  rmSync(file)
  const own = `mayfly-bench-${running.child.pid}-`
  expect(readdirSync(tmpdir()).filter((name) => name.startsWith(own))).toEqual([])
})

it('compares two checkouts', async () => {
  const fast = ['--quick', '--source', '--only', 'status', '--clients', '2', '--pairs', '1']
  const { stdout, stderr } = await run(process.execPath, [MAIN, ...fast, '--against', '.'])
  expect(stdout).toMatch(/\| GET \/v1\/status \| 2 \| [1-9]\d* \|.*: [1-9]\d*\/s, p50 .* ms \| [\d.]+ \|/)
  rmSync(/written to (\S+\.json)/.exec(stderr)?.[1] ?? '')
})

it('refuses an unknown scenario and lists the known ones', async () => {
  const refused = await run(process.execPath, [MAIN, '--only', 'nothing']).catch((error) => error)
  expect(refused).toMatchObject({ code: 2, stdout: '' })
  expect(refused.stderr).toMatch(/unknown scenario: nothing.*issue-sqlite/s)
})

it('reads the output of openssl speed', () => {
  expect(readSpeed('Got: +F2:2:2048:1:2 from 0\n+F2:2:2048:4585.148515:76932.000000\n')).toBe(4585.148515)
  expect(readSpeed('+F4:3:256:70523.469388:23645.918367\n')).toBe(70523.469388)
  expect(readSpeed('')).toBeUndefined()
})
