import { useNavigate } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { Building2, Languages, Moon, Plus, Sun, SunMoon, User } from 'lucide-react';
import { Dialog as RadixDialog } from 'radix-ui';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { api } from '../api/client.js';
import { languages, setLanguage } from '../i18n/i18n.js';
import { useMe } from './me.js';
import { pages } from './nav.js';
import { setTheme, themes } from './theme.js';

/** Nodes offered at most; more letters narrow them. */
const nodesMax = 30;
const groupClass =
  '[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-2xs [&_[cmdk-group-heading]]:text-ink-3';
const itemClass =
  'flex h-8 cursor-pointer items-center gap-2.5 rounded-md px-2 data-[selected=true]:bg-accent-soft data-[selected=true]:text-accent [&_svg]:size-4 [&_svg]:shrink-0';
const themeIcons = { light: Sun, dark: Moon, system: SunMoon };

/** ⌘K: every page, node and switch by a few letters. */
export function Palette({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const me = useMe();
  const [text, setText] = useState('');
  const organisation = api.useQuery(
    'get',
    '/api/v1/organisation',
    {},
    { enabled: me.permissions.includes('tree.read'), staleTime: 30_000 },
  );
  const wanted = text.trim().toLowerCase();
  const nodes = wanted
    ? (organisation.data?.nodes ?? [])
        .filter(({ name }) => name.toLowerCase().includes(wanted))
        .slice(0, nodesMax)
    : [];
  const run = (action: () => void) => () => {
    onClose();
    action();
  };

  return (
    <RadixDialog.Root open onOpenChange={(open) => !open && onClose()}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="appear fixed inset-0 z-40 bg-[rgb(8_14_18_/_0.45)]" />
        <RadixDialog.Content
          aria-describedby={undefined}
          className="appear fixed top-[14vh] left-1/2 z-50 w-[calc(100vw-2rem)] max-w-lg -translate-x-1/2 overflow-hidden rounded-xl border border-line bg-surface shadow-float"
        >
          <RadixDialog.Title className="sr-only">{t('shell.jump')}</RadixDialog.Title>
          <Command label={t('shell.jump')} loop>
            <Command.Input
              value={text}
              onValueChange={setText}
              placeholder={t('shell.jump')}
              className="h-11 w-full border-b border-line bg-transparent px-4 text-sm outline-none placeholder:text-ink-3"
            />
            <Command.List className="max-h-[50vh] overflow-y-auto p-1.5">
              <Command.Empty className="px-3 py-8 text-center text-ink-3">
                {t('state.nothingFound')}
              </Command.Empty>
              {nodes.length > 0 && (
                <Command.Group heading={t('page.organisation')} className={groupClass}>
                  {nodes.map((node) => (
                    <Command.Item
                      key={node.id}
                      value={`${node.name} ${node.id}`}
                      className={itemClass}
                      onSelect={run(
                        () => void navigate({ to: '/organisation', search: { node: node.id } }),
                      )}
                    >
                      {node.level === 'user' ? <User aria-hidden /> : <Building2 aria-hidden />}
                      <span className="truncate">{node.name}</span>
                      <span className="ml-auto text-xs text-ink-3">{t(`level.${node.level}`)}</span>
                    </Command.Item>
                  ))}
                </Command.Group>
              )}
              <Command.Group heading={t('shell.pages')} className={groupClass}>
                {pages.map(({ path, name, key, icon: Icon }) => (
                  <Command.Item
                    key={path}
                    value={`${t(`page.${name}`)} ${name}`}
                    className={itemClass}
                    onSelect={run(() => void navigate({ to: path }))}
                  >
                    <Icon aria-hidden />
                    {t(`page.${name}`)}
                    <kbd className="ml-auto font-sans text-2xs text-ink-3">{`g ${key}`}</kbd>
                  </Command.Item>
                ))}
              </Command.Group>
              <Command.Group heading={t('shell.switches')} className={groupClass}>
                {me.permissions.includes('limits.write') && (
                  <Command.Item
                    className={itemClass}
                    onSelect={run(
                      () =>
                        void navigate({
                          to: '/organisation',
                          search: { node: me.enterprise.id, limit: 'new' },
                        }),
                    )}
                  >
                    <Plus aria-hidden />
                    {t('limit.addOn', { name: me.enterprise.name })}
                  </Command.Item>
                )}
                {themes.map((theme) => {
                  const Icon = themeIcons[theme];
                  return (
                    <Command.Item
                      key={theme}
                      className={itemClass}
                      onSelect={run(() => setTheme(theme))}
                    >
                      <Icon aria-hidden />
                      {t('shell.themeIs', { theme: t(`theme.${theme}`) })}
                    </Command.Item>
                  );
                })}
                {languages.map((language) => (
                  <Command.Item
                    key={language}
                    className={itemClass}
                    onSelect={run(() => setLanguage(language))}
                  >
                    <Languages aria-hidden />
                    {t(`language.${language}`)}
                  </Command.Item>
                ))}
              </Command.Group>
            </Command.List>
          </Command>
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}
