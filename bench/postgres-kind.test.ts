import { describe, expect, it } from 'vitest'
import { pgbenchScript, readPgbench } from './bare-roles.ts'
import type { Burst } from './loader.ts'
import { comparedRows, type IssuePair } from './postgres-kind/issuing.ts'
import { readKindOptions } from './postgres-kind/options.ts'

describe('the options of postgres-kind', () => {
  it('default to the newest PostgreSQL, an empty one, and the recommended way', () => {
    expect(readKindOptions({})).toEqual({
      server: 18,
      way: 'functions',
      tables: [1],
      live: [0],
      iterations: [4_096, 256],
      clients: [1, 8],
    })
  })

  it('take lists of numbers, which live credentials need in rising order', () => {
    const given = {
      tables: '1,1000',
      live: '20000,0',
      iterations: '256',
      clients: '4',
      postgres: '15',
      way: 'direct',
    }
    expect(readKindOptions(given)).toEqual({
      server: 15,
      way: 'direct',
      tables: [1, 1_000],
      live: [0, 20_000],
      iterations: [256],
      clients: [4],
    })
  })

  it('take the URL of a server', () => {
    const url = 'postgresql://postgres@127.0.0.1:5432/postgres'
    expect(readKindOptions({ postgres: url }).server).toBe(url)
  })

  it.each([
    [{ way: 'both' }, '--way is functions or direct'],
    [{ postgres: '14' }, '--postgres is one of 15, 16, 17, 18, or a URL'],
    [{ tables: '1;2' }, '--tables is a list of numbers, such as 1,1000'],
    [{ live: '' }, '--live is a list of numbers, such as 1,1000'],
  ])('refuse %o', (given, message) => {
    expect(() => readKindOptions(given)).toThrow(message)
  })
})

describe('pgbench', () => {
  it('runs each statement with a number of its own', () => {
    const statements = (n: string) => [`ALTER ROLE r_${n} NOLOGIN`, `DROP ROLE r_${n}`]
    expect(pgbenchScript({ n: 'random', statements })).toBe(
      '\\set n random(1, 140737488355328)\nALTER ROLE r_:n NOLOGIN;\nDROP ROLE r_:n;\n',
    )
    expect(pgbenchScript({ n: 'next', statements })).toMatch(
      /^SELECT nextval\('bare_next'\) AS n \\gset\nALTER/,
    )
  })

  it('reports its rate, and the quantiles of its log', () => {
    const printed = 'number of clients: 8\ntps = 177.25 (without initial connection time)\n'
    const log = '0 1 5000 0 1700000000 1\n1 1 9000 0 1700000000 2\n0 2 7000 0 1700000000 3\n'
    const measured = readPgbench(printed, log)
    expect(measured.perSecond).toBe(177.25)
    expect([measured.p50, measured.p99].map(Math.round)).toEqual([7, 9])
  })

  it('says what it printed if there is no rate', () => {
    expect(() => readPgbench('Run was aborted', '')).toThrow('Run was aborted')
  })
})

describe('the rows of issuing', () => {
  const pair = (ours: number, bare: number): IssuePair => {
    const figures = (perSecond: number) => ({ perSecond, p50: 1_000 / perSecond, p95: 20, p99: 30 })
    return { ours: { ...figures(ours), cores: 1, rssMb: 100 } as Burst, reference: figures(bare) }
  }

  it('have the median share of the pairs, with a goal at eight clients that depends on the iterations', () => {
    const pairs = [pair(90, 100), pair(80, 100), pair(10, 100)]
    const [row, ...others] = comparedRows('Issue', 8, 4_096, 'pgbench', pairs)
    expect(others).toEqual([])
    expect(row).toMatchObject({ ratio: 0.8, goal: { text: '≥ 0.7', holds: true } })
    expect(row?.comparedWith).toBe('bare CREATE ROLE (pgbench): 100/s, p50 10.00, p99 30.00 ms')
    expect(comparedRows('Issue', 8, 256, 'pgbench', [pair(29, 100)])[0]?.goal).toEqual({
      text: '≥ 0.3',
      holds: false,
    })
  })

  it('compare the median latency of one client, with a goal at the recommended iterations', () => {
    const [throughput, latency] = comparedRows('Issue', 1, 4_096, 'pgbench', [pair(50, 100)])
    expect(throughput?.goal).toBeUndefined()
    expect(latency).toMatchObject({ ratio: 2, goal: { text: '≤ 1.5', holds: false } })
    expect(comparedRows('Issue', 1, 256, 'pgbench', [pair(50, 100)])[1]?.goal).toBeUndefined()
  })
})
