import { Link, Outlet, useMatches, useRouter } from '@tanstack/react-router';
import { Command, Keyboard, Lock, LogOut, Menu, Moon, Sun, SunMoon } from 'lucide-react';
import { Dialog as RadixDialog, DropdownMenu } from 'radix-ui';
import { Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Toaster } from 'sonner';
import { api, queryClient } from '../api/client.js';
import { languages, setLanguage, type Language } from '../i18n/i18n.js';
import { Button, IconButton } from '../ui/button.js';
import { cn } from '../ui/cn.js';
import { PanelBoundary } from '../ui/panel.js';
import { Loading, State } from '../ui/states.js';
import { Tooltip } from '../ui/tooltip.js';
import { BooksStatus } from './books-status.js';
import { useShortcuts } from './keyboard.js';
import { Mark } from './mark.js';
import { useDenied, useMe } from './me.js';
import { pageGroups, pages } from './nav.js';
import { Palette } from './palette.js';
import { ShortcutsDialog } from './shortcuts-dialog.js';
import { setTheme, themes, useTheme } from './theme.js';

/** The frame around every page: where one is, how far the books are, and the ways to everywhere else. */
export function Shell() {
  const { t } = useTranslation();
  const [overlay, setOverlay] = useState<'palette' | 'shortcuts' | 'menu' | null>(null);
  const theme = useTheme();
  useShortcuts({ palette: () => setOverlay('palette'), help: () => setOverlay('shortcuts') });
  const close = () => setOverlay(null);

  return (
    <div className="flex min-h-dvh">
      <a
        href="#main"
        className="absolute -top-20 left-2 z-60 rounded bg-surface px-3 py-2 focus:top-2"
      >
        {t('shell.skip')}
      </a>
      <aside className="sticky top-0 hidden h-dvh w-52 shrink-0 flex-col border-r border-line bg-surface lg:flex">
        <Brand />
        <Nav />
        <BooksStatus className="mt-auto border-t border-line p-3" />
      </aside>
      <div className="flex min-w-0 flex-1 flex-col">
        <header className="sticky top-0 z-30 flex h-12 items-center gap-2 border-b border-line bg-surface/90 px-3 backdrop-blur lg:px-5">
          <IconButton
            className="lg:hidden"
            label={t('shell.menu')}
            icon={<Menu />}
            onClick={() => setOverlay('menu')}
          />
          <button
            type="button"
            onClick={() => setOverlay('palette')}
            className="flex h-8 w-full max-w-72 items-center gap-2 rounded-md border border-line-strong bg-canvas px-2.5 text-ink-3 hover:border-ink-3"
          >
            <Command aria-hidden className="size-3.5" />
            <span className="truncate">{t('shell.jump')}</span>
            <kbd className="ml-auto hidden font-sans text-2xs sm:block">{t('shell.jumpKey')}</kbd>
          </button>
          <div className="ml-auto flex items-center gap-1">
            <IconButton
              className="max-sm:hidden"
              label={t('shell.shortcuts')}
              icon={<Keyboard />}
              onClick={() => setOverlay('shortcuts')}
            />
            <LanguageSwitch />
            <ThemeSwitch />
            <UserMenu />
          </div>
        </header>
        <main id="main" className="flex min-w-0 flex-1 flex-col gap-4 p-3 lg:p-5">
          <Suspense fallback={<Loading rows={8} />}>
            <PanelBoundary>
              <GatedOutlet />
            </PanelBoundary>
          </Suspense>
        </main>
      </div>
      {overlay === 'palette' && <Palette onClose={close} />}
      {overlay === 'shortcuts' && <ShortcutsDialog onClose={close} />}
      {overlay === 'menu' && <MobileMenu onClose={close} />}
      <Toaster
        theme={theme}
        position="bottom-right"
        closeButton
        containerAriaLabel={t('shell.notices')}
        toastOptions={{ duration: 5_000 }}
      />
    </div>
  );
}

/** The page, or why this role may not see it. */
function GatedOutlet() {
  const { t } = useTranslation();
  const denied = useDenied();
  const permission = useMatches({
    select: (matches) => matches.at(-1)?.staticData.permission ?? null,
  });
  const reason = permission === null ? null : denied(permission);
  if (reason === null) return <Outlet />;
  return <State kind="denied" title={t('state.denied')} text={reason} />;
}

function Brand() {
  const { t } = useTranslation();
  const { enterprise } = useMe();
  return (
    <div className="flex h-12 items-center gap-2.5 border-b border-line px-3.5">
      <Mark className="size-6" />
      <div className="min-w-0 leading-tight">
        <p className="text-sm font-semibold tracking-tight">{t('product')}</p>
        <p className="truncate text-2xs text-ink-3">{enterprise.name}</p>
      </div>
    </div>
  );
}

function Nav({ onNavigate }: { onNavigate?: () => void }) {
  const { t } = useTranslation();
  const denied = useDenied();
  return (
    <nav aria-label={t('shell.menu')} className="flex flex-col gap-4 overflow-y-auto p-2.5">
      {pageGroups.map((group) => (
        <div key={group} className="flex flex-col gap-px">
          <p className="px-2 pb-1 text-2xs font-medium text-ink-3">{t(`shell.group.${group}`)}</p>
          {pages
            .filter((page) => page.group === group)
            .map(({ path, name, permission, icon: Icon }) => {
              const reason = denied(permission);
              const link = (
                <Link
                  to={path}
                  activeOptions={{ exact: path === '/', includeSearch: false }}
                  onClick={onNavigate}
                  className={cn(
                    'flex h-8 items-center gap-2.5 rounded-md px-2 text-ink-2 hover:bg-sunken hover:text-ink data-[status=active]:bg-accent-soft data-[status=active]:font-medium data-[status=active]:text-accent',
                    reason && 'text-ink-3',
                  )}
                >
                  <Icon aria-hidden className="size-4 shrink-0" />
                  <span className="truncate">{t(`page.${name}`)}</span>
                  {reason && <Lock aria-label={reason} className="ml-auto size-3 shrink-0" />}
                </Link>
              );
              return reason ? (
                <Tooltip key={path} text={reason}>
                  {link}
                </Tooltip>
              ) : (
                <div key={path}>{link}</div>
              );
            })}
        </div>
      ))}
    </nav>
  );
}

function MobileMenu({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <RadixDialog.Root open onOpenChange={(open) => !open && onClose()}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="appear fixed inset-0 z-40 bg-[rgb(8_14_18_/_0.45)]" />
        <RadixDialog.Content
          aria-describedby={undefined}
          className="appear fixed inset-y-0 left-0 z-50 flex w-64 flex-col bg-surface shadow-float"
        >
          <RadixDialog.Title className="sr-only">{t('shell.menu')}</RadixDialog.Title>
          <Brand />
          <Nav onNavigate={onClose} />
          <BooksStatus className="mt-auto border-t border-line p-3" />
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}

const menuClass = 'appear z-50 min-w-40 rounded-lg border border-line bg-surface p-1 shadow-float';
const itemClass =
  'flex h-8 items-center gap-2 rounded px-2 outline-none select-none data-[highlighted]:bg-sunken data-[state=checked]:font-medium data-[state=checked]:text-accent [&_svg]:size-4';

export function LanguageSwitch() {
  const { t, i18n } = useTranslation();
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger asChild>
        <Button variant="ghost" className="px-2" aria-label={t('shell.language')}>
          {t('shell.languageShort')}
        </Button>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content align="end" sideOffset={4} className={menuClass}>
          <DropdownMenu.RadioGroup
            value={i18n.language}
            onValueChange={(language) => setLanguage(language as Language)}
          >
            {languages.map((language) => (
              <DropdownMenu.RadioItem key={language} value={language} className={itemClass}>
                {t(`language.${language}`)}
              </DropdownMenu.RadioItem>
            ))}
          </DropdownMenu.RadioGroup>
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

const themeIcons = { light: Sun, dark: Moon, system: SunMoon };

export function ThemeSwitch() {
  const { t } = useTranslation();
  const theme = useTheme();
  const Current = themeIcons[theme];
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger asChild>
        <Button variant="ghost" size="icon" aria-label={t('shell.theme')} icon={<Current />} />
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content align="end" sideOffset={4} className={menuClass}>
          <DropdownMenu.RadioGroup
            value={theme}
            onValueChange={(next) => setTheme(themes.find((known) => known === next) ?? 'system')}
          >
            {themes.map((name) => {
              const Icon = themeIcons[name];
              return (
                <DropdownMenu.RadioItem key={name} value={name} className={itemClass}>
                  <Icon aria-hidden />
                  {t(`theme.${name}`)}
                </DropdownMenu.RadioItem>
              );
            })}
          </DropdownMenu.RadioGroup>
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

function UserMenu() {
  const { t } = useTranslation();
  const { user } = useMe();
  const router = useRouter();
  const signOut = api.useMutation('post', '/api/v1/auth/sign-out', {
    onSettled: () => {
      queryClient.clear();
      void router.navigate({ to: '/sign-in' });
    },
  });
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger asChild>
        <Button variant="ghost" size="icon" aria-label={t('shell.account')}>
          <span
            aria-hidden
            className="grid size-6 place-items-center rounded-full bg-accent-soft text-2xs font-semibold text-accent"
          >
            {user.name.slice(0, 1).toUpperCase()}
          </span>
        </Button>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content align="end" sideOffset={4} className={cn(menuClass, 'min-w-52')}>
          <div className="border-b border-line px-2 pt-1 pb-2">
            <p className="truncate font-medium">{user.name}</p>
            <p className="truncate text-xs text-ink-3">{user.email}</p>
            <p className="text-xs text-ink-3">{t(`role.${user.role}`)}</p>
          </div>
          <DropdownMenu.Item className={cn(itemClass, 'mt-1')} onSelect={() => signOut.mutate({})}>
            <LogOut aria-hidden />
            {t('action.signOut')}
          </DropdownMenu.Item>
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
