"""What is given as a password is masked whatever it looks like; what only talks of one is not."""

import json
import random
import string
from pathlib import Path

import pytest

import takeback
from history import command

PASSWORDS = [
    "Password" + "123!",
    "MySecret" + "2024",
    "@dm1n" + "Pw",
    "$uper" + "Pw",
    "Sup3r" + "(Pw)99",
    "Tr0ub4dor" + "&3x9",
    "hunter" + "2",
    "p@ss,w0rd;x",
    "a|b}c]1",
    "token" + "Of2Day",
    "#1=yes&no",
    "Welcome1.",
]
FORMS = [
    "password={}",
    "log in with password={} please",
    "PASSWORD: {}",
    "password: {}",
    "db:\n  password: {}\n  host: x",
    '{{"user": "ana", "password": "{}", "port": 1}}',
    "{{'passwd': '{}'}}",
    'password = "{}"',
    "export DB_PASSWORD={}",
    "PGPASSWORD={} psql -h db",
    "MYSQL_PWD='{}' mysql",
    "tool --password {} run",
    "tool --db-password={}",
    'tool --password "{}"',
    "mysql -u root -p{} shop",
    "my password is {}",
    "set the password to {}, then log in",
    "const password: string = '{}';",
    "the passphrase is '{}'",
    'config["password"] = "{}"',
    "settings['PASSWORD'] = '{}'",
    '"{{\\"password\\": \\"{}\\"}}"',
    "DB_PASS={}",
    "curl -u ana:{} https://example.org",
    "<password>{}</password>",
]
TOLD = [
    ("clone https://ana:{}@example.org/x.git", "p@ss:w0rd9"),
    ("postgres://ana:{}@db:5432/shop", "s3cr3t$x"),
    ("connect to ana:{}@db.example.org", "s3cr3tpass"),
    ("curl -H 'Authorization: Basic {}'", "dXNlcjpwYXNz"),
    ("curl -H 'Authorization: Bearer {}'", "abcdefghijkl"),
    ("Authorization: {}", "abcDEFghij12"),
    ('{{"Authorization": "Token {}"}}', "abcdef123456"),
    ("client_secret={}", "Shop2024x"),
    ("api_key: {}", "a1b2c3d4e5"),
    ("export API_TOKEN={}", "abc123def456"),
    ("X-Api-Key: {}", "k3y-0f-th3-d4y"),
    ("sshpass -p {} ssh x", "s3cr3t"),
    ("headers['Authorization'] = 'Basic {}'", "dXNlcjpwYXNz"),
    ("password='it''s {}'", "swordfish"),
    ("Passwort: {}", "geheim123"),
    ("password=<{}>", "Pa55word"),
    ("password=({})", "Pa55word"),
    ("password=-{}", "x1y2z3"),
    ("password2: {}", "abc1"),
    ("app.password.value={}", "abc1"),
    ("pass: {}", "hunter2"),
    ("rootpw={}", "toor1"),
    ("ALTER USER ana WITH PASSWORD '{}';", "swordfish"),
    ("CREATE USER ana IDENTIFIED BY '{}';", "swordfish"),
    ("use password {} for it", "swordfish9"),
    ("rootpw={}", "toor"),
    ("tool --token {} run", "abc"),
    ("tool --api-key {}", "abc"),
    ('"privateKey": "{}"', "abc"),
    ("access_key={}", "abc"),
    ("Passwort\uff1a{}", "swordfish9"),
    ("DB_PASS={}", "root"),
    ("SECRET={}", "hunter2"),
    ("secret: {}", "hunter2"),
    ('token: "{}"', "abc"),
    ("token={}", "abc"),
    ("api_key={}", "abc"),
    ("SESSION_SECRET={}", "keyboardcat"),
    ("JWT_SECRET={}", "mysecret"),
    ("credentials: {}", "ana:swordfish"),
    ("the password is: {}", "swordfish"),
    ("password -> {}", "swordfish"),
    ("password {} opens it", "4711"),
    ("Kennwort: {}", "swordfish"),
    ("redis-cli -h db -a {} get k", "swordfish"),
    ("echo ana:{} | chpasswd", "x"),
    ('echo "root:{}" | sudo chpasswd', "toor"),
    ("echo {} | sudo -S rm x", "swordfish"),
    ("docker login -u ana -p {}", "swordfish"),
    ("unzip -P {} a.zip", "swordfish"),
    ("7z x -p{} a.7z", "swordfish"),
    ("mongo -u ana -p {}", "swordfish"),
    ("ldapsearch -D cn=x -w {}", "swordfish"),
    ("openssl enc -aes-256-cbc -k {}", "swordfish"),
    ("htpasswd -b users ana {}", "swordfish"),
    ("htpasswd -b -B users ana {}", "swordfish"),
    ("htpasswd -bBC 10 users ana {}", "swordfish"),
    ("htpasswd -nbB ana {} > users", "swordfish"),
    ("docker run --entrypoint htpasswd registry:2 -Bbn ana {}", "swordfish"),
]
HARMLESS = [
    "password=None, token_count=5, max_tokens=1024",
    "def login(user: str, password: str) -> None:",
    "password = get_password()",
    "password = os.environ['DB_PASSWORD']",
    'password=os.getenv("PW")',
    "login(user=user, password=password, token=token)",
    "login(password=self.password, secret=settings.SECRET_KEY)",
    "password=$PASSWORD and PASSWORD=${DB_PASSWORD}",
    "--password $DB_PASSWORD --token <token> password=%s",
    "password: {{ db_password }}",
    "PASSWORD_MIN_LENGTH=12 password_file=/run/secrets/db",
    "docker login --password-stdin registry.example.org",
    "add a password field, and hash each password with sha256",
    "the password is wrong, so show an error",
    "password: at least twelve characters",
    "all tests pass: 12 of 12; the first pass is slow",
    "mkdir -p src/app && cp -p a b",
    "mailto:ana@example.org, npm:react@18.2.0, image:1.2@sha256",
    "git clone git@github.com:ana/shop.git",
    "the password ******** is shown as stars",
    "new_password=old_password",
    "the password `field` of the form; password=[REDACTED] password=<your password>",
    "see password.md: it tells how",
    "pwd: /srv/app, docker run -p8080:80 mysql",
    "authorization = check_authorization(user)",
    "if password == expected: raise",
    "change the password to at least twelve characters",
    "token = match; for token in tokens: if token == EOF",
    "def f(token: str, secret: bytes | None = None) -> None:",
    "tests: pass=12 fail=3; pass: yes; token=5 tokens",
    "fetch(url, {credentials: 'same-origin'}), then echo y | sudo apt install x",
    "docker login registry.example.org && docker run -p 80:80 x; zip -r a.zip b; 7z x a.7z",
    "use the token: it is short; secret santa: who draws whom; token_type=bearer",
]


def told(tree: Path, prompt: str, *words: str) -> str:
    """What `takeback` tells of turns with these prompts, and commands of the same words.

    A long one is several turns: of each, the log keeps the beginning.
    """
    lines = prompt.split("\n")
    with takeback.open(tree) as project:
        session = project.session("claude", title=prompt)
        for at in reversed(range(0, len(lines), 40)):
            part = "\n".join(lines[at : at + 40])
            with session.turn(part) as turn, turn.step("Bash", {"command": part}):
                (tree / "a.txt").write_text(part)
        session.end()
    said = command(tree, *words)
    assert said.code == 0, said.err
    return said.out


def labels(text: str) -> str:
    """The prompts in the JSON of `log`."""
    turns = json.loads(text)["turns"]
    return "\n".join(str(turn["label"]) for turn in turns)


@pytest.mark.usefixtures("home")
def test_no_password_is_shown_in_any_form(tree: Path) -> None:
    """Each password, in each form in which people give one away, is masked as a whole."""
    lines = {}
    for form in FORMS:
        for password in PASSWORDS:
            quotes = form.partition("{}")[0][-1:] in ("'", '"')
            # Without quotes, what ends a value ends it, and a shell would take it apart.
            is_plain = quotes or all(sign not in password for sign in ",;|")
            if is_plain:
                lines[form.format(password).replace("\n", " ")] = password
    lines |= {form.format(secret): secret for form, secret in TOLD}
    shown = labels(told(tree, "\n".join(lines), "log", "--json")).splitlines()
    assert len(shown) == len(lines)
    leaked = []
    for (line, password), seen in zip(lines.items(), shown, strict=True):
        around = line.replace(password, "")
        pieces = {password[at : at + 3] for at in range(max(1, len(password) - 2))}
        if any(piece in seen and piece not in around for piece in pieces):
            leaked.append((line, seen))
    assert leaked == []


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "form",
    [
        "curl https://example.org \\\n  -u ana:{} \\\n  -o x",
        "mysql -u root \\\n-p{} shop",
        "docker login example.org \\\n  -u ana \\\n  -p {}",
    ],
)
def test_a_command_of_several_lines_shows_no_password(tree: Path, form: str) -> None:
    """A line that ends with a backslash goes on in the next one, where the option may stand."""
    shown = labels(told(tree, form.format("sw0rdfish"), "log", "--json"))
    assert shown == form.format("\u2022" * 4)


@pytest.mark.usefixtures("home")
def test_what_only_talks_of_passwords_is_shown(tree: Path) -> None:
    """Code, placeholders, types and prose are shown as they were written."""
    shown = labels(told(tree, "\n".join(HARMLESS), "log", "--json"))
    assert shown.splitlines() == HARMLESS


def fakes() -> dict[str, str]:
    """Tokens of several services, made up here so that no scanner takes them for real ones."""
    chance = random.Random(15)

    def some(count: int, letters: str = string.ascii_letters + string.digits) -> str:
        return "".join(chance.choice(letters) for _ in range(count))

    hexes = "0123456789abcdef"
    made = {
        "hf": "hf_" + some(34),
        "sendgrid": "SG." + some(22) + "." + some(43),
        "telegram": some(10, "123456789") + ":AA" + some(33),
        "twilio key": "SK" + some(32, hexes),
        "twilio account": "AC" + some(32, hexes),
    }
    made |= {
        f"shopify {kind}": f"shp{kind}_" + some(32, hexes) for kind in ("at", "ca", "pa", "ss")
    }
    return made | {f"do {kind}": f"do{kind}_v1_" + some(64, hexes) for kind in "opr"}


@pytest.mark.usefixtures("home")
def test_tokens_of_more_services_are_masked(tree: Path) -> None:
    """In prompts, commands and diffs of any file, only the kind of a token is shown."""
    made = fakes()
    prompt = "\n".join(f"deploy with {token} now, or x={token};" for token in made.values())
    prompt += f"\nhttps://example.org/bot{made['telegram']}/getMe"
    for words in (("log", "--json"), ("show", "@~0", "--json"), ("diff", "@-")):
        (tree / "a.txt").write_text("")
        shown = told(tree, prompt, *words)
        assert [name for name, token in made.items() if token[-20:] in shown] == []
        assert [name for name, token in made.items() if token[:2] not in shown] == []
    harmless = "TASK AC SK: shape, shp, 12345678:AAA and SG.x.y; AC97 SKU"
    assert labels(told(tree, harmless, "log", "--json", "--limit", "1")) == harmless
