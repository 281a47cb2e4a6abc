import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { fieldsOf } from '../../cli/kind-form/fields.ts'
import { flagsOf } from '../../cli/kind-form/flags.ts'
import { RECIPES } from './builtin.ts'
import { kindOf } from './kind.ts'
import type { Recipe } from './schema.ts'

const HEADINGS = [
  'Set up',
  'Scopes',
  'Lifetimes and what ending does',
  'Environment variables',
  'Through the proxy',
  'At scale',
  'Troubleshooting',
]

test.each((RECIPES as Recipe[]).map((recipe) => [recipe.type, recipe]))(
  'the page of %s says what the recipe does',
  (type, recipe) => {
    const page = readFileSync(new URL(`../../../docs/backends/${type}.md`, import.meta.url), 'utf8')
    expect([...page.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading)).toEqual(HEADINGS)

    const kind = kindOf(recipe)
    const [, command = ''] = new RegExp(`^mayfly backend add ${type} (.*)$`, 'm').exec(page) ?? []
    const flags = flagsOf(type, fieldsOf({ ...kind.config }))
    const given = [...command.matchAll(/--([a-z-]+)/g)].map(([, flag = '']) => flag)
    expect(flags.map(({ flag }) => flag)).toEqual(expect.arrayContaining(given))
    const needed = flags.filter(({ field }) => field.needed)
    expect(given).toEqual(expect.arrayContaining(needed.map(({ flag }) => flag)))

    const rows = [...page.matchAll(/^\| `([^`]+)` +\|/gm)].map(([, form]) => form)
    const forms = new Set(kind.scopes.forms.map(({ form }) => form))
    for (const form of rows)
      if (form !== '<area>:read' && form !== '<area>:write') expect(forms).toContain(form)
    if (type !== 'gitea') expect(rows).toHaveLength(forms.size)
    for (const name of Object.keys(recipe.environment ?? {})) expect(page).toContain(`\`${name}\``)
  },
)
