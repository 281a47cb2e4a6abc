import { describe, expect, test } from 'vitest'
import { InvalidValue } from '../fault.ts'
import { IdentityRefused } from './identity.ts'
import { expandAgentName, MAX_EXPANDED_NAME, parseTemplate } from './template.ts'

test('a template is text and claims, as written', () => {
  expect(parseTemplate('ci-{run_id}.{kubernetes.io/pod/name}').parts).toEqual([
    { text: 'ci-' },
    { claim: 'run_id' },
    { text: '.' },
    { claim: 'kubernetes.io/pod/name' },
  ])
  expect(parseTemplate('deployer').parts).toEqual([{ text: 'deployer' }])
})

test.each([
  'ci-{run_id',
  'ci-run_id}',
  'ci-{{run_id}}',
  'ci-{}',
  'ci-{run id}',
  'ci-{ }',
  '{run_id}',
  '{a}{b}',
  '{a}-{b}',
  '-ci',
  '-{a}ci',
  'ci {a}',
  'ci/{a}',
  'ci*',
  'admin',
  'System',
  '',
  'x'.repeat(MAX_EXPANDED_NAME + 1),
])('refuses the template %j', (text) => {
  expect(() => parseTemplate(text)).toThrow(InvalidValue)
})

describe('the name', () => {
  const template = parseTemplate('ci-{ref}-{run_id}')

  test('has the values of the claims, which it is bound to, case included', () => {
    const name = expandAgentName(template, { run_id: 12, ref: 'Main' })
    expect(name).toEqual({ name: 'ci-Main-12', values: ['Main', '12'] })
  })

  test.each([
    'a*',
    'a+b',
    'a/b',
    '..',
    'a..b',
    'a b',
    'a\n',
    '',
    'a:b',
    'a@b',
    'ä',
    'a%2fb',
    '{run_id}',
    'x'.repeat(130),
    undefined,
    ['a'],
    { a: 1 },
    null,
  ])('is refused for the value %j', (ref) => {
    const expanding = () => expandAgentName(template, { ref, run_id: '1' })
    expect(expanding).toThrow(IdentityRefused)
    expect(expanding).toThrow('value')
  })

  test('is refused where values and text together make two dots', () => {
    expect(() => expandAgentName(parseTemplate('ci.{a}'), { a: '.b' })).toThrow(IdentityRefused)
  })

  test('is refused where it begins with no letter or digit, or is a reserved one', () => {
    expect(() => expandAgentName(parseTemplate('{a}ci'), { a: '-' })).toThrow(IdentityRefused)
    expect(() => expandAgentName(parseTemplate('{a}min'), { a: 'aD' })).toThrow(IdentityRefused)
    expect(expandAgentName(parseTemplate('{a}min'), { a: 'b' }).name).toBe('bmin')
  })

  test('is never taken from what all objects have', () => {
    expect(() => expandAgentName(parseTemplate('ci-{constructor}'), {})).toThrow(IdentityRefused)
  })

  test('says which claim it was, and never its value', () => {
    try {
      expandAgentName(template, { ref: 'evil value', run_id: '1' })
      expect.unreachable()
    } catch (error) {
      expect((error as IdentityRefused).detail).toBe(
        'the claim ref has characters that no name of an agent has',
      )
    }
  })
})
