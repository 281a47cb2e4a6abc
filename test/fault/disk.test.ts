import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newBody } from '../support/store.ts'
import type { Command } from './store-child.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const canCompile = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0
const BALLAST_BYTES = 8 * 1024 * 1024

interface StoreState {
  trouble: string | null
  ids: string[]
  reports: string[]
}

class StoreChild {
  readonly process: ChildProcess
  readonly #waiting = new Map<number, (answer: never) => void>()
  readonly #gone: Promise<never>
  #count = 0
  errors = ''

  constructor(directory: string, env: Record<string, string>) {
    this.process = spawn(process.execPath, [here('./store-child.ts'), directory], {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.process.stderr?.on('data', (text) => {
      this.errors += text
    })
    this.#gone = once(this.process, 'exit').then(() => {
      throw new Error(`the store process ended: ${this.errors}`)
    })
    this.#gone.catch(() => undefined)
    const { stdout } = this.process
    if (stdout === null) throw new Error('no output')
    createInterface({ input: stdout }).on('line', (line) => {
      const answer = JSON.parse(line)
      this.#waiting.get(answer.n)?.(answer as never)
    })
  }

  ready(): Promise<void> {
    return this.#answerTo(0)
  }

  async commit(ids: string[], more: { urgent?: boolean; bytes?: number } = {}): Promise<string[]> {
    return (await this.#ask<{ answers: string[] }>({ n: this.#next(), op: 'commit', ids, ...more })).answers
  }

  inspect(): Promise<StoreState> {
    return this.#ask<StoreState>({ n: this.#next(), op: 'inspect' })
  }

  async kill(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const gone = once(this.process, 'exit')
    this.process.kill('SIGKILL')
    await gone
  }

  #next(): number {
    this.#count += 1
    return this.#count
  }

  #answerTo<T>(n: number): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>()
    this.#waiting.set(n, resolve as (answer: never) => void)
    return Promise.race([promise, this.#gone])
  }

  #ask<T>(command: Command): Promise<T> {
    const answer = this.#answerTo<T>(command.n)
    this.process.stdin?.write(`${JSON.stringify(command)}\n`)
    return answer
  }
}

describe.skipIf(!canCompile)('a store on a failing disk (needs Linux and cc)', () => {
  let work: string
  let library: string
  let directory: string
  let control: string
  let child: StoreChild

  beforeAll(() => {
    work = mkdtempSync(join(tmpdir(), 'mayfly-fault-'))
    library = join(work, 'fault-disk.so')
    execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, here('../support/fault-disk.c'), '-ldl'])
  })
  afterAll(() => rmSync(work, { recursive: true }))
  beforeEach(async () => {
    directory = mkdtempSync(join(work, 'data-'))
    mkdirSync(directory, { recursive: true })
    control = `${directory}.control`
    child = await start()
  })
  afterEach(async () => {
    rmSync(control, { force: true })
    await child.kill()
  })

  async function start(): Promise<StoreChild> {
    const env = { LD_PRELOAD: library, FAULT_DIRECTORY: `${directory}/`, FAULT_CONTROL: control }
    const started = new StoreChild(directory, env)
    await started.ready()
    return started
  }
  const fail = (how: string) => writeFileSync(control, how)
  const heal = () => rmSync(control, { force: true })
  const usedBytes = () =>
    readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0)
  const newIds = (count: number) => Array.from({ length: count }, () => newBody())
  async function acknowledged(ids: string[], more: { urgent?: boolean; bytes?: number } = {}): Promise<void> {
    expect(new Set(await child.commit(ids, more))).toEqual(new Set(['true']))
  }
  async function recovered(): Promise<void> {
    const until = Date.now() + 8_000
    while ((await child.inspect()).trouble !== null) {
      if (Date.now() > until)
        throw new Error(`the store did not recover: ${JSON.stringify(await child.inspect())}`)
      await setTimeout(50)
    }
  }

  test.each(['sync', 'write'])(
    '%s fails: rejects and discards new changes, keeps earlier ones',
    async (how) => {
      const first = newIds(300)
      await acknowledged(first)
      fail(how)
      const lost = newIds(50)
      expect(new Set(await child.commit(lost))).toEqual(new Set(['the database cannot be written']))
      const during = await child.inspect()
      expect(during.trouble).toBe('the database cannot be written')
      expect(new Set(during.ids)).toEqual(new Set(first))
      expect(await child.commit(newIds(1))).toEqual(['the database cannot be written'])
      expect(await child.commit(newIds(1), { urgent: true })).toEqual(['the database cannot be written'])
      // Long enough for several recovery attempts to fail.
      await setTimeout(2_500)
      expect((await child.inspect()).trouble).not.toBeNull()
      heal()
      await recovered()
      const second = newIds(300)
      await acknowledged(second)
      const all = new Set([...first, ...second])
      expect(new Set((await child.inspect()).ids)).toEqual(all)
      await child.kill()
      child = await start()
      expect(new Set((await child.inspect()).ids)).toEqual(all)
    },
  )

  test('reopens the file after a long fault and serves again', async () => {
    const first = newIds(20)
    await acknowledged(first)
    fail('sync')
    expect(await child.commit(newIds(1))).toEqual(['the database cannot be written'])
    await setTimeout(6_500)
    heal()
    await recovered()
    const second = newIds(20)
    await acknowledged(second)
    await child.kill()
    child = await start()
    const { ids } = await child.inspect()
    for (const id of [...first, ...second]) expect(ids).toContain(id)
  })

  test('a full disk: urgent changes succeed, using the reserve', async () => {
    const kept = newIds(200)
    await acknowledged(kept)
    fail(`cap ${usedBytes() + 16_384}`)
    let refused = 0
    for (let round = 0; round < 40 && refused === 0; round += 1) {
      const ids = newIds(4)
      const answers = await child.commit(ids, { bytes: 2_000 })
      for (const [n, answer] of answers.entries()) {
        if (answer === 'true') kept.push(ids[n] ?? '')
        else {
          expect(answer).toBe('the disk is full')
          refused += 1
        }
      }
    }
    expect(refused).toBeGreaterThan(0)
    expect((await child.inspect()).trouble).toBe('the disk is full')
    expect(readdirSync(directory)).not.toContain('ballast')
    for (let round = 0; round < 100; round += 1) {
      const ids = newIds(2)
      await acknowledged(ids, { urgent: true, bytes: 2_000 })
      kept.push(...ids)
      expect(await child.commit(newIds(1))).toEqual(['the disk is full'])
    }
    heal()
    await recovered()
    expect(statSync(join(directory, 'ballast')).size).toBe(BALLAST_BYTES)
    const after = newIds(10)
    await acknowledged(after)
    kept.push(...after)
    await child.kill()
    child = await start()
    const { ids } = await child.inspect()
    expect(new Set(ids)).toEqual(new Set(kept))
    expect(ids).toHaveLength(kept.length)
  })

  test('a full disk: urgent changes succeed when ordinary changes share their batch', async () => {
    await acknowledged(newIds(50))
    fail(`cap ${usedBytes()}`)
    const [ordinary, urgent] = [newIds(20), newIds(20)]
    const answers = await Promise.all([
      child.commit(ordinary, { bytes: 30_000 }),
      child.commit(urgent, { urgent: true }),
    ])
    expect(new Set(answers[0])).toEqual(new Set(['the disk is full']))
    expect(new Set(answers[1])).toEqual(new Set(['true']))
  })

  test('kill -9 under load: keeps every acknowledged change', async () => {
    const acknowledgedIds = new Set<string>()
    const load = Array.from({ length: 8 }, async () => {
      for (;;) {
        const ids = newIds(20)
        const answers = await child.commit(ids).catch(() => undefined)
        if (answers === undefined) return
        for (const [n, answer] of answers.entries()) {
          if (answer === 'true') acknowledgedIds.add(ids[n] ?? '')
        }
        if (acknowledgedIds.size > 2_000) await child.kill()
      }
    })
    await Promise.all(load)
    child = await start()
    const found = new Set((await child.inspect()).ids)
    expect(acknowledgedIds.size).toBeGreaterThan(2_000)
    for (const id of acknowledgedIds) expect(found.has(id)).toBe(true)
  })

  test('starting on a full disk: serves reads and urgent changes, and ordinary ones once there is room', async () => {
    const first = newIds(400)
    await acknowledged(first, { bytes: 1_000 })
    await child.kill()
    fail(`cap ${usedBytes()}`)
    child = await start()
    const { trouble, ids } = await child.inspect()
    expect(trouble).not.toBeNull()
    expect(new Set(ids)).toEqual(new Set(first))
    await acknowledged(newIds(1), { urgent: true })
    heal()
    await recovered()
    await acknowledged(newIds(1))
  })
})
