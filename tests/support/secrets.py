"""Secrets of every kind that is taken out of texts: tokens by their shape, values by their name."""

from __future__ import annotations

LOW, MIXED, HEX = (
    "abcdefghij0123456789abcdefghij012345",
    "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5",
    "0123456789abcdef" * 4,
)
# put together here, so that no scanner takes this file for a leak
TOKENS = {
    "openai": ["sk-proj-" + MIXED, "sk-" + HEX[:32], "sk-or-v1-" + HEX],
    "anthropic": ["sk-ant-api03-" + MIXED, "sk-ant-oat01-" + MIXED],
    "github": ["ghp_" + LOW, "gho_" + LOW, "ghs_" + LOW, "github_pat_11ABC_" + LOW],
    "gitlab": ["glpat-" + LOW[:20]],
    "slack": ["xoxb-" + "123456789012-" + LOW, "xoxp-" + LOW, "xapp-1-" + LOW],
    "aws": ["AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPLE"],
    "google": ["AIza" + MIXED[:35], "GOCSPX-" + LOW],
    "npm": ["npm_" + LOW],
    "pypi": ["pypi-" + "AgEIcHlwaS5vcmc" + MIXED],
    "huggingface": ["hf_" + MIXED],
    "stripe": ["sk_live_" + LOW, "rk_test_" + LOW],
    "telegram": ["123456789:AA" + MIXED[:33]],
    "sendgrid": ["SG." + LOW[:22] + "." + MIXED],
    "vault": ["hvs." + MIXED],
    "shopify": ["shpat_" + HEX[:32]],
    "linear": ["lin_api_" + MIXED],
    "figma": ["figd_" + MIXED],
    "databricks": ["dapi" + HEX[:32]],
    "age": ["AGE-SECRET-KEY-1" + MIXED.upper()],
    "discord": ["MTk" + MIXED[:23] + "." + MIXED[:6] + "." + MIXED[:30]],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + MIXED],
}
ALL_TOKENS = [token for tokens in TOKENS.values() for token in tokens]
PEM_BODY = ("MIIEpAIBAAKCAQEA7bq9+/" + MIXED + "\n") * 6 + "abc=\n"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}-----END RSA PRIVATE KEY-----"

SECRET_LINES = """
Authorization: Bearer hunter2
authorization: bearer abc.def
curl -H "Authorization: Basic aHVudGVyMjpodW50ZXIy" https://x
{"Authorization": "token hunter2"}
Basic dXNlcjpodW50ZXIy
postgres://admin:hunter2@db.example.com:5432/app
redis://:hunter2@localhost
https://x-access-token:hunter2@github.com/a/b.git
API_KEY=hunter2
API_KEY="hunter2"
export API_KEY='hunter2'
  STRIPE_SECRET=hunter2 # comment
DB_PASSWORD=hunter2,;&)x
MY_SERVICE_TOKEN=hunter2
GOOGLE_CREDENTIALS=hunter2
MYSQL_PWD=hunter2
SMTP_PASSWD=hunter2
docker run -e DB_PASSWORD=hunter2 image
+ API_TOKEN=hunter2
00012| SECRET_KEY=hunter2
   12\tdb_password=hunter2
db_password=hunter2
password = "hunter2"
password = hunter2
const apiKey: string = "hunter2";
password: str = 'hunter2'
os.environ["API_KEY"] = "hunter2"
{"api_key": "hunter2", "n": 1}
{"apiKey":"hunter2"}
{\\"api_key\\": \\"hunter2\\"}
"line\\nDB_PASSWORD=hunter2\\nOTHER=1"
password: hunter2
  client_secret: 'hunter2 and more'
access_token: "hunter2"
- DB_PASSWORD=hunter2
passphrase: correcthorsehunter
X-Api-Key: hunter2
https://api.example.com/v1?api_key=hunter2&page=2
--password hunter2
--api-key=hunter2
aws_secret_access_key = hunter2/K7MDENG/bPxRfiCYEXAMPLE
token = "hunter2aB3dE5gH7"
SMTP_PASS=hunter2
SIM_PIN="hunter2"
PASSWORD_SALT=hunter2
REDIS_AUTH=hunter2
//registry.example.com/:_auth=hunter2aB3d
machine git.example.com login mia password hunter2
curl -u mia:hunter2 https://example.com
curl --user "mia:hunter2 x" https://example.com
mysql -h db -u root -phunter2 shop
sshpass -p 'hunter2 x' ssh host
redis-cli -a hunter2 info
docker login -u mia -p hunter2 registry.example.com
echo 'hunter2 x' | sudo -S ls
echo "mia:hunter2" | chpasswd
kinit mia <<< "hunter2"
vault login hunter2aB3dE5gH7
openssl pkcs12 -in a.p12 -passin pass:hunter2
kubectl create secret generic db --from-literal=password=hunter2
CREATE USER 'mia' IDENTIFIED BY 'hunter2'
Cookie: theme=dark; sid=hunter2aB3dE5gH7
Set-Cookie: session_token=hunter2aB3dE5gH7; Path=/; HttpOnly
https://example.com/file?X-Amz-Expires=60&X-Amz-Signature=hunter2aB3d
https://example.com/reset-password/hunter2aB3dE5gH7jK
<password>hunter2</password>
<add key="ApiKey" value="hunter2"/>
define('DB_PASSWORD', 'hunter2 x');
Server=db;User=mia;Password=hunter;Encrypt=True
new PDO($dsn, 'shop', 'hunter2');
sql.Open("mysql", "shop:hunter2@tcp(db:3306)/shop")
const key = process.env.API_KEY || "hunter2";
the password is hunter2, try again
the API key for staging is hunter2aB3d
log in as mia / hunter2
gpg --passphrase "hunter under the bridge" -d a.gpg
""".strip().splitlines()
